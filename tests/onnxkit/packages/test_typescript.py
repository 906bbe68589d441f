"""A signature in TypeScript and JavaScript."""

import json
from types import SimpleNamespace

from onnxbuild.onnxkit.bundles.manifest import Value
from onnxbuild.onnxkit.packages.signature import signature_of
from onnxbuild.onnxkit.packages.typescript import (
    example_call,
    javascript_signature,
    refused_port,
    typed_port,
)

AXES = {"batch": {"min": 1, "max": 8, "example": 2, "multiple_of": 1}}


def signature(*inputs):
    return signature_of(
        SimpleNamespace(
            name="demo",
            variant="int8",
            file="model.onnx",
            inputs=inputs,
            outputs=(Value("y", "float32", ("batch",)),),
            dynamic_axes=AXES,
        )
    )


def test_each_type_has_its_array_and_elements():
    found = signature(
        Value("ids", "int64", ("batch", "past + 1")),
        Value("half", "float16", (3,)),
        Value("text", "string", ("batch",)),
        Value("any", "bool", None),
    )
    ids, half, text, unknown = (typed_port(each, found) for each in found.inputs)
    assert (ids["taken"], ids["element"], ids["given"]) == (
        "BigInt64Array", "bigint | number", "BigInt64Array",
    )  # fmt: skip
    assert ids["rules"] == "; batch: 1 to 8"
    assert (half["taken"], half["given"]) == ("HalfArray | Float32Array", "Float32Array")
    assert text["taken"] == "readonly string[]"
    assert unknown["shape_text"] == "[...]"
    assert json.loads(javascript_signature(found))["inputs"][3] == {
        "name": "any", "dtype": "bool", "shape": None,
    }  # fmt: skip
    assert json.loads(javascript_signature(found))["axes"] == AXES


def test_a_type_without_an_array_is_found_and_names_end_no_comment():
    found = signature(Value("x", "bfloat16", ("a */ b",)))
    assert refused_port(found).name == "x"
    assert refused_port(signature()) is None
    odd = signature(Value("x", "int8", ("a */ b",)))
    assert "*/" not in typed_port(odd.inputs[0], odd)["shape_text"]


def test_the_example_has_arrays_at_the_example_sizes():
    found = signature(Value("a-b", "float32", ("batch", 3)), Value("text", "string", ("batch",)))
    assert example_call(found) == (
        '{ "a-b": { data: new Float32Array(6), shape: [2, 3] }, '
        '"text": { data: Array(2).fill("text"), shape: [2] } }'
    )
