"""Names and literals of C++."""

import pytest

from onnxbuild.onnxkit.cpp.content import json_literal, literal, members_of, namespace_of


@pytest.mark.parametrize(
    ("text", "written"), [("input_ids", '"input_ids"'), ("what??/", '"what\\?\\?/"')]
)
def test_a_literal_holds_any_text(text, written):
    assert literal(text) == written


def test_a_literal_of_json_holds_its_escapes():
    assert json_literal('é"') == '"\\"\\\\u00e9\\\\\\"\\""'


def test_members_are_no_keywords_and_no_macros():
    assert members_of(("class", "input.ids", "linux", "x", "X")) == {
        "class": "_class", "input.ids": "input_ids", "linux": "_linux", "x": "x", "X": "x_2",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("recipe", "variant", "expected"),
    [
        ("digits", "int8", "digits_int8"),
        ("my-Model", "fp32", "my_model_fp32"),
        ("3d", "x", "model_3d_x"),
    ],
)
def test_a_namespace_begins_with_a_letter(recipe, variant, expected):
    assert namespace_of(recipe, variant) == expected
