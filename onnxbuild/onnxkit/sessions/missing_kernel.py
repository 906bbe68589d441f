"""A node that ONNX Runtime has no kernel for: which type it computes in, and what to do about that."""

from __future__ import annotations

import re
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.model.inspect import dtype_name
from onnxbuild.onnxkit.model.model_files import load_model

_MISSING = re.compile(
    r"Could not find an implementation for (?P<operator>\w+)\(\d+\) node with name '(?P<node>[^']*)'"
)
_RARE = ("bfloat16", "float64", "float16")
"""Types of floats that providers have few kernels for."""


def missing_kernel_fix(said: str, model: str | bytes) -> str:
    """Return the fix where the type is why a kernel is missing; empty where it is not, or nobody can say.

    Args:
        said: The message of the error that a session was refused with.
        model: What the session was asked for: a file, or its content.
    """
    found = _MISSING.search(said)
    if found is None:
        return ""
    operator, name = found["operator"], found["node"]
    for dtype in _types_of(model, operator, name):
        if dtype in _RARE:
            return f"compute in float32, as `return model.float()` does: ONNX Runtime has no {operator} of {dtype} there"
    return ""


def _types_of(model: str | bytes, operator: str, name: str) -> list[str]:
    import onnx

    try:
        proto = (
            onnx.ModelProto.FromString(model)
            if isinstance(model, bytes)
            else load_model(Path(model), weights="left")
        )
        proto = onnx.shape_inference.infer_shapes(proto)
    except (StepError, onnx.shape_inference.InferenceError, ValueError):
        return []
    graph = proto.graph
    types = {each.name: each.data_type for each in graph.initializer}
    for value in (*graph.value_info, *graph.input, *graph.output):
        types[value.name] = value.type.tensor_type.elem_type
    return [
        dtype_name(types[value])
        for node in graph.node
        if node.op_type == operator and node.name == name
        for value in node.input
        if types.get(value)
    ]
