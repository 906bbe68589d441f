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
        ("samples: 4", "samples: {{ n }}", 10, 'quote the value, as in `"{{ n }}"`'),
        ("[batch, 4]", '["batch", "4"]', 5, "write `4`"),
        ("[batch, 4]}", "[batch, 4]]}", 5, "add the `}` or the `,`"),
        (
            "    mode: static\n    per",
            "  mode: static\n  per",
            13,
            "write `quantization: {NAME: {mode: static, ...}}`",
        ),
    ],
)
def test_a_colon_a_level_or_quotes(tmp_path, old, new, line, fix):
    assert RECIPE.count(old) == 1
    assert (line, fix) in faults(tmp_path, RECIPE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "line", "place"),
    [
        ("  x: {dtype: float32, ", "  dtype: float32\n  x: {", 5, "dummy_inputs.x.dtype"),
        (", example: 2}", "}\n  example: 2", 8, "dynamic_axes.batch.example"),
    ],
)
def test_a_key_a_level_up_is_moved_and_nothing_is_missing(tmp_path, old, new, line, place):
    text = RECIPE.replace(old, new)
    (at, fix), *others = faults(tmp_path, text)
    assert (at, fix) == (line, f"move it to `{place}`")
    assert not [each for _, each in others if "write a value" in each or each.startswith("add `d")]
