"""The table of a signature in every README."""

from __future__ import annotations

from types import SimpleNamespace

from onnxbuild.onnxkit.bundles.manifest import Value
from onnxbuild.onnxkit.packages.contents import signature_table
from onnxbuild.onnxkit.packages.signature import signature_of, with_labels


def signature(*outputs, golden=(), axes=None):
    return signature_of(
        SimpleNamespace(
            name="demo",
            variant="int8",
            file="model.onnx",
            inputs=(Value("a|b", "float32", ("batch", 4)),),
            outputs=outputs,
            dynamic_axes=axes or {},
        ),
        golden,
    )


def test_without_labels_axes_and_golden_inputs_there_is_one_table():
    assert signature_table(signature(Value("y", "float32", None))) == (
        "| | name | type | shape |\n"
        "|---|---|---|---|\n"
        "| input | `a\\|b` | float32 | `[batch, 4]` |\n"
        "| output | `y` | float32 | `[...]` |\n"
    )


def test_long_lists_of_labels_are_shown_in_part():
    labels = tuple(f"class {n}" for n in range(1000))
    axes = {"batch": {"min": 1, "max": 8, "example": 2, "multiple_of": 1}}
    text = signature_table(
        signature(Value("y", "float32", ("batch", 1000), labels), golden=("min",), axes=axes)
    )
    assert "| 1000: class 0, class 1, " in text
    assert "class 10, ..., class 999 |" in text
    assert "class 11" not in text
    assert text.endswith("| `batch` | 1 to 8 |\n\nGolden inputs: `min`.\n")


def test_labels_belong_to_the_floats_that_have_as_many_places():
    found = with_labels(
        signature(
            Value("scores", "float16", ("batch", 2)), Value("ids", "int64", ("batch", 2)),
            Value("other", "float32", ("batch", 3)), Value("text", "string", (2,)),
        ),
        ("no", "yes"),
    )  # fmt: skip
    assert found.labels == {"scores": ("no", "yes")}
