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
        ("    mode: static", "    mode:static", 13, "write `mode: static`"),
        ("{min: 1,", "{min:1,", 7, "write `min: 1`"),
        ("  samples: 4", "  samples 4", 10, "write `samples: 4`"),
        ("  samples: 4", "  samples = 4", 10, "write `samples: 4`"),
        ("calibration:\n", "calibration\n", 8, "write `calibration:`"),
        ("  samples: 4", "   samples: 4", 10, "indent this line like its siblings"),
        ("  data: ", "data: ", 10, "indent this line like its siblings"),
        ("samples: 4", "samples: {{ n }}", 10, 'write `"{{ n }}"`'),
        ("samples: 4", "samples: {{ n }}0  # ten", 10, 'write `"{{ n }}0"`'),
        ("[batch, 4]", "[batch, {{ min(n, 4) }}]", 5, 'write `"{{ min(n, 4) }}"`'),
        ("max: 8,", "max: {{ n * 2 }},", 7, 'write `"{{ n * 2 }}"`'),
        ("[batch, 4]", '["batch", "4"]', 5, "write `4`"),
        ("shape: [batch, 4]", "shape: '(batch, 4)'", 5, "write `[batch, 4]`"),
        ("shape: [batch, 4]", "shape: batch x 4", 5, "write `[batch, 4]`"),
        ("  samples: 4", "  samples: 1,000", 10, "write `1000`"),
        ("name: tiny", "name: 1.10", 2, 'quote it: `"1.10"`'),
        ("shape: [batch, 4]", "shape: batch 4", 5, "write `[batch, 4]`"),
        ("[batch, 4]", "[batch 4]", 5, "write `batch, 4`"),
        ("[batch, 4]", "[[batch, 4]]", 5, "write `batch, 4`"),
        ("[batch, 4]", "[None, 4]", 5, "write `batch`"),
        ("[batch, 4]", "[?, 4]", 5, 'write a name, or quote it: `"?"`'),
        ("shape: [batch, 4]", "shape: batch, 4", 5, "put them in brackets: `[batch, 4]`"),
        ("shape: [batch, 4]", "shape: (batch, 4)", 5, "put them in brackets: `[batch, 4]`"),
        (
            "dtype: float32, shape: [batch, 4]",
            "dtype: [batch, 4], shape: fp32",
            5,
            "write `{dtype: float32, shape: [batch, 4]}`",
        ),
        (
            "x: {dtype: float32, shape: [batch, 4]}",
            "x: [float32, [batch, 4]]",
            5,
            "write `{dtype: float32, shape: [batch, 4]}`",
        ),
        (
            "x: {dtype: float32, shape: [batch, 4]}",
            "x: float32[batch, 4]",
            5,
            "write `{dtype: float32, shape: [batch, 4]}`",
        ),
        (
            "x: {dtype: float32, shape: [batch, 4]}",
            "name: x\n  dtype: float32\n  shape: [batch, 4]",
            4,
            "write `dummy_inputs: {x: {dtype: float32, shape: [batch, 4]}}`",
        ),
        (
            "x: {dtype: float32, shape: [batch, 4]}",
            "- {name: x, dtype: float32, shape: [batch, 4]}",
            5,
            "write `{x: {dtype: float32, shape: [batch, 4]}}`",
        ),
        (
            "    mode: static\n    per",
            "    static: {}\n    per",
            13,
            "write `{mode: static, per_channel: true}`",
        ),
        (
            "  data: m.py:data\n",
            "  data: m.py:data\n  format: npz: x\n",
            10,
            "write `format: {npz: x}`",
        ),
        ("  samples: 4", "  samples: four:", 10, "write `samples: four`"),
        ("  samples: 4", "  samples: - 4", 10, "write `samples: [4]`"),
        ("[batch, 4]}", "[batch, 4]]}", 5, "add the `}` or the `,`"),
        ("model: m.py:load", "model: m.py:load\noutputs: [y]]", 4, "remove the `]`"),
        ("model: m.py:load", "model: m.py:load\noutputs:\n-y", 5, "write `- y`"),
        ("model: m.py:load", "model: m.py:load\noutputs: -y", 4, "write `[y]`"),
        ("{min: 1,", "{min: 1;", 7, "write `,`"),
        ("x: {dtype", "x:\u00a0{dtype", 5, "write a blank in its place"),
        ("  x: {dtype", "\u00a0 x: {dtype", 5, "write a blank in its place"),
        ("x: {dtype", "x\uff1a{dtype", 5, "write `:` in its place"),
        ("{min: 1,", "{min: 1\uff0c", 7, "write `,` in its place"),
        ("samples: 4", "samples: 4\u200b", 10, "remove it"),
        ("  samples: 4", "  samples: 4 samples", 10, "write `4`"),
        (
            "quantization:\n",
            "benchmark: {max_time_s: 10s}\nquantization:\n",
            11,
            "write `10`, in seconds",
        ),
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
        ("dummy_inputs:\n  x: {dtype: float32, ", "dtype: float32\ndummy_inputs:\n  x: {", 4,
         "dummy_inputs.x.dtype"),
        (", example: 2}", "}\n  example: 2", 8, "dynamic_axes.batch.example"),
        ("  data: m.py:data\n  samples: 4\n", "samples: 4\n", 9, "calibration.samples"),
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


def test_an_only_axis_that_no_shape_uses_is_removed_with_its_section(tmp_path):
    text = RECIPE.replace("[batch, 4]", "[2, 4]")
    assert faults(tmp_path, text) == [(7, "remove `dynamic_axes`, or use it in a shape")]


def test_words_of_other_languages_and_curly_quotes_are_text(tmp_path):
    for words in (
        "\u201ca model\u201d",
        "\u6a21\u578b\uff1aint8\uff0cfp16",
        "it\u2019s \u2013 small",
    ):
        assert faults(tmp_path, f"{RECIPE}description: {words}\n") == []


def test_a_place_that_is_taken_is_not_where_a_key_is_moved(tmp_path):
    assert faults(tmp_path, f"{RECIPE}dtype: float32\n") == [
        (15, "move it to `dummy_inputs.NAME.dtype`")
    ]


def test_a_template_as_a_key_over_two_lines_or_in_place_of_a_recipe_has_one_error_too(tmp_path):
    assert faults(tmp_path, RECIPE + "{{ n }}: 3\n") == [(15, 'write `"{{ n }}"`')]
    text = RECIPE.replace("samples: 4", "samples: {{\n    n }}")
    assert faults(tmp_path, text) == [(10, "write it in quotes, within one line")]
    assert faults(tmp_path, "{{ n }}\n") == [(1, 'write `"{{ n }}"`')]
