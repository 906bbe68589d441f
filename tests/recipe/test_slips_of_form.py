"""A slip of indentation, of a colon, of a dash or of quotes around a template has one fault, at its line, with the text to type."""

from __future__ import annotations

import pytest

from onnxbuild.core.errors import RecipeErrors
from onnxbuild.recipe.load import load_recipes

RECIPE = """\
version: 1
name: tiny
model: m.py:load
dummy_inputs:
  x: {dtype: float32, shape: [batch, 4]}
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
calibration:
  data: m.py:data
  samples: 4
quantization:
  int8:
    mode: static
    per_channel: true
"""


def faults(folder, text):
    (folder / "m.py").write_text("def load(): ...\n\n\ndef data(): ...\n")
    (folder / "tiny.yaml").write_text(text)
    try:
        load_recipes(folder / "tiny.yaml", project=folder)
    except RecipeErrors as errors:
        return [(int(each.where.split(":")[1]), each.fix) for each in errors.faults]
    return []


def test_the_recipe_is_sound(tmp_path):
    assert faults(tmp_path, RECIPE) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "fix"),
    [
        ("  samples: 4", "  samples:4", 10, "write `samples: 4`"),
        ("  samples: 4", "  samples 4", 10, "write `samples: 4`"),
        ("calibration:\n", "calibration\n", 8, "write `calibration:`"),
        ("  samples: 4", "   samples: 4", 10, "indent this line like its siblings"),
        ("samples: 4", "samples: {{ n }}", 10, 'write `"{{ n }}"`'),
        ("[batch, 4]", "[batch, {{ min(n, 4) }}]", 5, 'write `"{{ min(n, 4) }}"`'),
        ("[batch, 4]", '["batch", "4"]', 5, "write `4`"),
        ("shape: [batch, 4]", "shape: batch x 4", 5, "write `[batch, 4]`"),
        ("[batch, 4]", "[None, 4]", 5, "write `batch`"),
        ("[batch, 4]", "[?, 4]", 5, 'write a name, or quote it: `"?"`'),
        (
            "x: {dtype: float32, shape: [batch, 4]}",
            "x: [float32, [batch, 4]]",
            5,
            "write `{dtype: float32, shape: [batch, 4]}`",
        ),
        (
            "x: {dtype: float32, shape: [batch, 4]}",
            "- {name: x, dtype: float32, shape: [batch, 4]}",
            5,
            "write `{x: {dtype: float32, shape: [batch, 4]}}`",
        ),
        ("  samples: 4", "  samples: - 4", 10, "write `samples: [4]`"),
        ("[batch, 4]}", "[batch, 4]]}", 5, "add the `}` or the `,`"),
        ("model: m.py:load", "model: m.py:load\noutputs:\n-y", 5, "write `- y`"),
        ("x: {dtype", "x\uff1a{dtype", 5, "write `:` in its place"),
        (
            "    mode: static\n    per",
            "  mode: static\n  per",
            13,
            "write `quantization: {int8: {mode: static, ...}}`",
        ),
        ("  int8:", "  - int8:", 12, "write `{int8: {mode: static, per_channel: true}}`"),
    ],
)
def test_a_colon_a_dash_blanks_or_quotes(tmp_path, old, new, line, fix):
    assert RECIPE.count(old) == 1
    assert faults(tmp_path, RECIPE.replace(old, new)) == [(line, fix)]


@pytest.mark.parametrize(
    ("old", "new", "line", "place"),
    [
("  x: {dtype: float32, ", "  dtype: float32\n  x: {", 5, "dummy_inputs.x.dtype"),
(", example: 2}", "}\n  example: 2", 8, "dynamic_axes.batch.example"),
],
)  # fmt: skip
def test_a_key_a_level_up_is_moved_and_nothing_is_missing(tmp_path, old, new, line, place):
    text = RECIPE.replace(old, new)
    (at, fix), *others = faults(tmp_path, text)
    assert (at, fix) == (line, f"move it to `{place}`")
    assert not [each for _, each in others if "write a value" in each or each.startswith("add `d")]


def test_a_recipe_below_a_key_and_one_below_another_have_one_fault(tmp_path):
    nested = "tiny:\n" + "".join(f"  {line}\n" for line in RECIPE.splitlines())
    assert faults(tmp_path, nested) == [(1, "remove `tiny:`, and indent the lines below less")]
    assert faults(tmp_path, RECIPE * 2) == [(15, "put it in a file of its own")]
