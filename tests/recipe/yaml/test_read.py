import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxbuild.core.errors import RecipeErrors
from onnxbuild.core.recipe import Location
from onnxbuild.document.faults import Faults
from onnxbuild.document.node import locate, locate_key, plain
from onnxbuild.recipe.yaml.read import read_yaml
from tests.examples import examples


def read(text):
    faults = Faults()
    content = text if isinstance(text, bytes) else text.encode()
    return read_yaml(content, "f.yaml", faults), faults


def sentences(text):
    _, faults = read(text)
    assert faults
    return [f"{fault.where}: {fault.what}" for fault in faults.error(["f.yaml"]).faults]


def test_every_value_and_key_knows_its_line_and_column():
    node, faults = read("a:\n  b: [1, {c: x}]\n")
    assert not faults
    assert plain(node) == {"a": {"b": [1, {"c": "x"}]}}
    assert locate(node, ("a", "b", 1, "c")) == Location("f.yaml", 2, 14)
    assert locate_key(node, ("a", "b")) == Location("f.yaml", 2, 3)
    assert locate(node, ("a", "missing", 3)) == Location("f.yaml", 2, 3)


def test_aliases_are_allowed_in_measure():
    node, faults = read("a: &x {k: 1}\nb: *x\nc: [*x, *x]\n")
    assert not faults
    assert plain(node) == {"a": {"k": 1}, "b": {"k": 1}, "c": [{"k": 1}, {"k": 1}]}


def test_quoted_scalars_are_strings():
    node, _ = read("""a: "1"\nb: 'true'\nc: |\n  2\nd: ""\n""")
    assert plain(node) == {"a": "1", "b": "true", "c": "2\n", "d": ""}


def test_a_billion_laughs_cost_nothing():
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    (sentence,) = sentences("\n".join(levels))
    assert sentence.endswith(
        "the file holds more than 10,000 values once its aliases are expanded"
    )


def test_ten_thousand_brackets_give_an_error_and_no_crash():
    for text in ("[" * 10_000, "{a: " * 10_000, "- " * 10_000, "? " * 10_000):
        (sentence,) = sentences(text)
        assert sentence.endswith("the file is nested deeper than 64 levels")


def test_a_file_over_one_mebibyte_is_refused_unread():
    (sentence,) = sentences(b"a" * (1024 * 1024 + 1))
    assert sentence == "f.yaml:1:1: the file has 1,048,577 bytes; a recipe has at most 1,048,576"


def test_a_byte_that_is_not_utf8_is_located():
    assert sentences(b"a: 1\nb: \xff\n") == ["f.yaml:2:4: byte 0xff is not UTF-8"]
    assert sentences("a: 1".encode("utf-16"))[0].startswith("f.yaml:1:1: byte 0xff")


def test_control_characters_and_impossible_escapes_are_refused():
    assert sentences("a: \x00") == ["f.yaml:1:4: character U+0000 is not allowed"]
    assert "not a character" in sentences('a: "\\UFFFFFFFF"')[0]
    assert sentences('a: "\\ud800"') == ["f.yaml:1:4: this string holds half of a surrogate pair"]


def test_a_very_long_string_is_refused():
    (sentence,) = sentences(f"a: {'x' * 70_000}")
    assert sentence == "f.yaml:1:4: this string is longer than 65,536 characters"


def test_several_faults_that_can_be_read_past_are_reported_together():
    assert len(sentences("a: 1\na: 2\n3: x\nb: !!python/name:os.system x\nc: .nan\n")) == 4


@pytest.mark.sampled
@given(st.text(max_size=200))
@settings(max_examples=examples(300))
def test_any_text_is_read_or_has_a_fault(text):
    node, faults = read(text.encode("utf-8", "replace"))
    assert (node is not None) or faults


@pytest.mark.sampled
@given(st.binary(max_size=200))
@settings(max_examples=examples(200))
def test_any_bytes_are_read_or_have_a_fault(content):
    node, faults = read(content)
    assert (node is not None) or faults
    if faults:
        assert isinstance(faults.error(["f.yaml"]), RecipeErrors)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.text("abc: -#'\"\n{}[]é", max_size=8),
    lambda below: (
        st.lists(below, max_size=4)
        | st.dictionaries(st.text("ab é", min_size=1), below, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.text("abc", min_size=1), _JSON, max_size=4))
@settings(deadline=None)
def test_what_a_yaml_writer_quotes_is_read_back(value):
    text = yaml.safe_dump(value, allow_unicode=True, default_style='"')
    text = text.replace("!!null ", "").replace("!!bool ", "").replace("!!int ", "")
    node, faults = read(text)
    assert not faults
    assert _texts(plain(node)) == _texts(value)


def _texts(value):
    """Scalars as the writer quotes them: everything a string."""
    if isinstance(value, dict):
        return {key: _texts(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_texts(item) for item in value]
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)
