"""`explain KEY`: the reference of each key, its example and its section of docs/recipe.md."""

import re
from pathlib import Path

import pytest

from onnxbuild.core.errors import UsageError
from onnxbuild.explanation.key_example import example_of
from onnxbuild.explanation.key_page import key_lines
from onnxbuild.recipe.schema.key_index import NAME, known_keys
from onnxbuild.recipe.schema.lean_jsonschema import Draft202012Validator
from onnxbuild.recipe.schema.recipe_schema import rendered_schema
from onnxbuild.recipe.schema.reference_page import titles_of

PAGE = (Path(__file__).parents[2] / "docs/recipe.md").read_text()
BALANCE = """\
quantization.NAME.balance

First even out the channels of normalized values and take outlier channels of
MLPs out, by `calibration: {data: ...}`: the model computes the same, and 8 bits
lose less.

value     true or false
default   false
in        mode 'dynamic' (quantization.NAME)
example   quantization:
            int8: {mode: dynamic, balance: true}
docs      docs/recipe.md#a-variant-of-mode-dynamic

First even out the channels of normalized values and take outlier channels of
MLPs out, over the calibration data: the model computes the same, and 8 bits
lose less.

value     true or false
default   false
in        mode 'static' (quantization.NAME)
example   quantization:
            int8: {mode: static, balance: true}
docs      docs/recipe.md#a-variant-of-mode-static
"""
GOAL = """\
quantization.NAME.goal

What may be lost; all that is named must hold.

value     mapping
default   none
in        mode 'auto' (quantization.NAME)
keys      cosine_mean, cosine_min, sqnr_db, max_drop, perplexity_ratio, size
example   quantization:
            int8: {mode: auto, goal: {cosine_mean: 0.99}}
docs      docs/recipe.md#a-variant-of-mode-auto
"""
MIN = """\
'min' stands in 4 places:
  dynamic_axes.NAME.min
  evaluate.min
  pipeline.min
  processing.postprocess.threshold.min
to read of one: onnxbuild explain dynamic_axes.NAME.min
"""


def said(text: str, columns: int = 80) -> str:
    return "".join(f"{line}\n" for line in key_lines(text, columns))


@pytest.mark.parametrize(("typed", "page"), [("quantization.int8.balance", BALANCE), ("min", MIN)])
def test_a_key_is_explained(typed, page):
    assert said(typed) == page


@pytest.mark.parametrize("columns", [50, 80])
def test_lines_fit_the_terminal(columns):
    for key in ("quantization.int8", "quantization.int8.nodes_to_exclude", "packages.triton"):
        for line in key_lines(key, columns):
            assert len(line) <= columns or "docs/recipe.md#" in line or ": {" in line, line


def test_an_unknown_key_names_the_three_nearest():
    typed = "balanse"
    near = "balance"
    with pytest.raises(UsageError) as caught:
        key_lines(typed, 80)
    what = re.escape(f"no recipe has a key '{typed}'; the nearest are {near}, ")
    assert re.fullmatch(what + r"\S+ and \S+", caught.value.what), caught.value.what
    assert caught.value.fix == f"onnxbuild explain {near}; all keys: docs/recipe.md"


def test_each_key_has_a_page_and_an_example_that_the_schema_takes():
    schema = rendered_schema()
    whole = {**schema, "required": []}
    whole = {key: value for key, value in whole.items() if key not in ("if", "then")}
    validator = Draft202012Validator(whole)
    faulty = {}
    for key in known_keys(schema):
        example = example_of(key, key.path, schema)
        found = next(validator.iter_errors(example), None)
        if found is not None:
            faulty[".".join(key.path)] = (example, found.message)
    assert faulty == {}


def test_each_key_of_the_schema_is_in_its_section_of_the_reference():
    schema = rendered_schema()
    sections = {
        section.partition("\n")[0]: section
        for section in PAGE.split("## Reference")[1].split("\n### ")
    }
    keys = [key for key in known_keys(schema) if key.path[-1] != NAME]
    for key, title in zip(keys, titles_of(schema, keys), strict=True):
        assert f"| `{key.path[-1]}` |" in sections[title] or (
            f"the provider {key.path[-1]} " in sections[title]
        ), (key.path, title)


def test_a_sections_plain_word_has_its_default_and_an_example_that_differs_from_it():
    lines = key_lines("report", 80)
    assert lines[2].endswith("next to the variants.")
    assert lines[4:6] == ["value     none, html, or mapping", "default   none"]
    assert "example   report: html" in lines
