"""Element types of a graph's values: what onnx's shape inference does not know, ONNX Runtime does."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.onnxkit.frameworks import onnx, onnxruntime
from onnxbuild.onnxkit.model.graphs import tensor_bytes
from onnxbuild.onnxkit.model.model_files import Weights, is_outside, load_model, read_mapped
from onnxbuild.onnxkit.model.scopes import separate_names
from onnxbuild.onnxkit.sessions.custom_operators import register_libraries
from onnxbuild.onnxkit.sessions.open import session_errors

_INLINE_BYTES = 1024
"""Constants up to this size stay in the probe: shapes, axes and scales are read by inference."""


def load_typed(folder: Path, *, weights: Weights = "read") -> onnx.ModelProto:
    """A model in which every value of the main graph has a `value_info`, and every value its own name.

    Quantizers and the fp16 converter go by these entries; onnx infers none behind an operator of
    another domain (com.microsoft), where they then fail or leave a Cast out. They keep one table of
    names for all graphs, too, so values of nested graphs that share one are renamed.

    Args:
        folder: An artifact's folder, or a model's file.
        weights: As of `load_model`, `read` or `mapped`.

    Raises:
        StepError: The model can't be read.
    """
    model = load_model(folder, weights="mapped")
    separate_names(model)
    _add_types(model)
    if weights == "read":
        read_mapped(model)
    return model


def _add_types(model: onnx.ModelProto) -> None:
    """Ask ONNX Runtime for the types that are missing; where it refuses, they stay missing.

    Its API says `[]` of a scalar and of an unknown shape alike: both get a type without a shape.
    """
    missing = _untyped(model.graph)
    if not missing:
        return
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    register_libraries(options)
    probe = without_weights(model)
    probe.graph.output.extend(onnx.ValueInfoProto(name=name) for name in missing)
    try:
        session = onnxruntime.InferenceSession(
            probe.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except session_errors():
        return
    element_types = runtime_types()
    for output in session.get_outputs():  # the shape of a scalar and an unknown one are both []
        if output.name in missing and output.type in element_types:
            model.graph.value_info.append(
                onnx.helper.make_tensor_value_info(
                    output.name, element_types[output.type], output.shape or None
                )
            )


def _untyped(graph: onnx.GraphProto) -> dict[str, None]:
    """The values without an element type, in the order they are made."""
    typed = {
        value.name
        for field in (graph.value_info, graph.output)
        for value in field
        if (value.type.HasField("tensor_type") and value.type.tensor_type.elem_type)
        or value.type.HasField("sequence_type")
    }
    made = (name for node in graph.node for name in node.output)
    return {name: None for name in made if name and name not in typed}


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy with its weights as inputs, so that none is copied; small constants stay."""
    probe = onnx.ModelProto(ir_version=model.ir_version)
    probe.opset_import.extend(model.opset_import)
    probe.functions.extend(model.functions)
    graph = probe.graph
    graph.name = model.graph.name
    graph.node.extend(model.graph.node)
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    for tensor in model.graph.initializer:
        if tensor_bytes(tensor) <= _INLINE_BYTES and not is_outside(tensor):
            graph.initializer.append(tensor)
        else:
            graph.input.append(
                onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
            )
    return probe


def runtime_types() -> dict[str, int]:
    """ONNX Runtime's spelling of a tensor's type, `tensor(float)` -> TensorProto's code."""
    names = {
        name.lower(): int(code)
        for name, code in onnx.TensorProto.DataType.items()
        if name != "UNDEFINED"
    }
    names |= {"float": onnx.TensorProto.FLOAT}
    return {f"tensor({name})": code for name, code in names.items()}
