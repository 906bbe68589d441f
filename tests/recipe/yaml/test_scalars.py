import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.recipe.yaml.scalars import resolve


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("null", None),
        ("", None),
        ("-3", -3),
        ("0x1F", 31),
        ("0o17", 15),
        ("1e-5", 1e-5),
        (".5", 0.5),
    ],
)
def test_numbers_booleans_and_null_are_those_of_yaml_1_2(text, value):
    assert resolve(text) == value
    assert type(resolve(text)) is type(value)


@pytest.mark.parametrize(
    "text",
    [
"no",
"on",
"1:30",
"010",
"1_000",
"2026-11-20",
],
)  # fmt: skip
def test_what_yaml_1_1_would_twist_stays_a_string(text):
    assert resolve(text) == text


@pytest.mark.parametrize("text", [".inf", ".nan", "1e999", "9" * 30])
def test_a_number_that_no_recipe_can_hold_is_refused(text):
    with pytest.raises(ValueError, match=r"finite|too large"):
        resolve(text)


@given(st.text())
def test_text_is_itself_unless_json_or_a_number_in_another_base_says_otherwise(text):
    """YAML 1.2 reads what JSON has as JSON does; all else that is no number is text."""
    try:
        value = resolve(text)
    except ValueError:
        assert set(text) <= set("+-.0123456789abcdefoxinfINFnaNAE")
        return
    if isinstance(value, str):
        assert value == text
    elif isinstance(value, bool) or value is None:
        assert text in {"true", "false", "null", "~", ""}
    else:
        assert value == (int(text, 0) if text[:2] in {"0x", "0o"} else float(text))
