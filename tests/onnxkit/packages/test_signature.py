"""Signatures and identifiers."""

from types import SimpleNamespace

import pytest

from onnxbuild.core.axis import Axis
from onnxbuild.onnxkit.bundles.manifest import Value
from onnxbuild.onnxkit.packages.signature import Port, identifiers, signature_of


def test_a_signature_knows_shapes_at_the_example_sizes():
    manifest = SimpleNamespace(
        name="demo",
        variant="int8",
        file="model.onnx",
        inputs=(Value("x", "float32", ("batch", "past + 1")), Value("s", "string", ())),
        outputs=(Value("y", "float32", None), Value("z", "int64", ("unk",))),
        dynamic_axes={
            "batch": {"min": 1, "max": 8, "example": 2, "multiple_of": 1},
            "past": {"min": 0, "max": 16, "example": 4, "multiple_of": 4},
        },
    )
    found = signature_of(manifest)
    assert [each.name for each in found.ports] == ["x", "s", "y", "z"]
    assert found.inputs[0].example_shape == (2, 5)
    assert found.inputs[0].shape_text == "[batch, past + 1]"
    assert (found.inputs[1].example_shape, found.inputs[1].shape_text) == ((), "[]")
    assert (found.outputs[0].example_shape, found.outputs[0].shape_text) == (None, "[...]")
    assert found.outputs[1].example_shape is None
    assert found.axis("past") == Axis("past", 0, 16, 4, 4)
    assert found.axis("unk") is None


@pytest.mark.parametrize(
    ("dimension", "shown"),
    [
        ("(sequence//2) + 1", "(sequence//2) + 1"),
        ("2*batch*/ ; fun evil() {} ; /*", "2*batch* / ? fun evil() ?? ? / *"),
        ("`|<b>${x}", "???b???x?"),
    ],
)
def test_a_shape_is_safe_in_comments_of_all_languages(dimension, shown):
    assert Port("y", "float32", (dimension, 3), None).shape_text == f"[{shown}, 3]"


@pytest.mark.parametrize(
    ("names", "style", "expected"),
    [
        (["input_ids", "last.hidden-state"], "camel", ["inputIds", "lastHiddenState"]),
        (["NCHW", "imageURL"], "camel", ["nchw", "imageURL"]),
        (["a", "a 2", "a_2"], "snake", ["a", "a_2", "a_2_2"]),
    ],
)
def test_identifiers_are_words_and_differ(names, style, expected):
    found = identifiers(names, style, {"function"})
    assert list(found.values()) == expected
    assert all(each.isidentifier() for each in found.values())
