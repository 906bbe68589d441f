"""Merge a pipeline into a model: raw inputs in, results out; and cut it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnxbuild.onnxkit.export.names import settle_names
from onnxbuild.onnxkit.frameworks import np, onnx
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import names_read
from onnxbuild.onnxkit.processing import writers
from onnxbuild.onnxkit.processing.audio import write_log_mel
from onnxbuild.onnxkit.processing.options import POSTPROCESS, PREPROCESS, ValueType
from onnxbuild.onnxkit.processing.pipeline import FittedPipeline, prefixed
from onnxbuild.onnxkit.processing.plan import PlannedOperation, fed_by
from onnxbuild.onnxkit.processing.writers import GraphWriter, write_on_output

_NO_WRAPPER = "\0"
INSIDE = "model/"
"""Prefix of the model's own values that are no inputs and outputs any more."""

_ON_INPUTS: Mapping[str, Callable[[GraphWriter, str, str, Any, ValueType], None]] = {
    "resize": writers.write_resize,
    "letterbox": writers.write_letterbox,
    "center_crop": writers.write_center_crop,
    "rescale": writers.write_rescale,
    "normalize": writers.write_normalize,
    "to_nchw": writers.write_to_nchw,
    "log_mel": write_log_mel,
}


def merge(model: onnx.ModelProto, fitted: FittedPipeline) -> None:
    """Put a pipeline's operators before and behind a model's, in place, in canonical form.

    Args:
        model: Its weights need not be loaded.
        fitted: Planned for this model.
    """
    inside = _names_inside(model, fitted)
    settle_names(model, inside, _NO_WRAPPER)
    names = {**inside, **{value: name for name, value in fitted.results.outputs.items()}}
    before, behind = GraphWriter(), GraphWriter()
    for chain in fitted.chains:
        own = {**names, chain.source.name: chain.source.name}
        as_they_are = [each for each in chain.feeds if chain.operations and not each.is_converted]
        own |= {each.value: inside[each.input] for each in as_they_are}
        for each in chain.operations:
            _write(before, _renamed(each, own), fitted)
        for feed in chain.feeds:
            if feed not in as_they_are:
                before.begin(f"preprocess/{feed.input}")
                before.cast(own.get(feed.value, feed.value), feed.wanted, inside[feed.input])
    for each in fitted.results.operations:
        _write(behind, _renamed(each, names), fitted)
    _put_together(model, fitted, inside, before, behind)
    canonicalize(model)


def _names_inside(model: onnx.ModelProto, fitted: FittedPipeline) -> dict[str, str]:
    """The model's values that must be called otherwise: old name -> new one."""
    graph, outputs = model.graph, fitted.results.outputs
    inside = {each: f"{INSIDE}{each}" for each in sorted(fed_by(fitted.chains))}
    for value in graph.output:
        if outputs.get(value.name) != value.name:
            inside[value.name] = f"{INSIDE}{value.name}"
    public = {*(chain.source.name for chain in fitted.chains), *outputs}
    own = {value.name for value in (*graph.input, *graph.output)}
    for name in sorted(public - own):
        inside.setdefault(name, f"{INSIDE}{name}")  # some value between may be called so
    return inside


def _renamed(each: PlannedOperation, names: Mapping[str, str]) -> PlannedOperation:
    def renamed(values: Mapping[str, ValueType]) -> dict[str, ValueType]:
        return {names.get(name, name): kind for name, kind in values.items()}

    return replace(each, takes=renamed(each.takes), gives=renamed(each.gives))


def _write(graph: GraphWriter, each: PlannedOperation, fitted: FittedPipeline) -> None:
    graph.begin(each.prefix)
    (value, kind), result = next(iter(each.takes.items())), next(iter(each.gives))
    if each.name in {"model", "tokenize"}:
        own = prefixed(fitted.graphs[each.prefix], each.prefix, value, list(each.gives))
        graph.nodes.extend(own.node)
        graph.constants.extend(own.initializer)
        graph.types.extend(own.value_info)
    elif each.name == "cast":
        graph.cast(value, each.options.dtype, result)
    elif each.name in _ON_INPUTS:
        _ON_INPUTS[each.name](graph, value, result, each.options, kind)
    else:
        write_on_output(graph, each, fitted.labels.get(each.prefix, ()))


def _put_together(
    model: onnx.ModelProto,
    fitted: FittedPipeline,
    inside: Mapping[str, str],
    before: GraphWriter,
    behind: GraphWriter,
) -> None:
    graph = model.graph
    sources = {inside[feed.input]: each.source for each in fitted.chains for feed in each.feeds}
    raw = {
        source.name: _value_info(source.name, source.dtype, source.shape)
        for source in sources.values()
    }
    taken = [
        sources[each.name].name if each.name in sources else each.name for each in graph.input
    ]
    there = {each.name: each for each in graph.input}
    inputs = [raw.get(name) or there[name] for name in dict.fromkeys(taken)]
    there = {each.name: each for each in graph.output}
    kinds = {
        value: kind for each in fitted.results.operations for value, kind in each.gives.items()
    }
    outputs = [
        there[value]
        if value in there
        else _value_info(name, kinds[value].dtype, kinds[value].shape)
        for name, value in fitted.results.outputs.items()
    ]
    values = [each for each in graph.output if each.name not in {out.name for out in outputs}]
    nodes = [*before.nodes, *graph.node, *behind.nodes]
    for field, wanted in (
        (graph.value_info, [*graph.value_info, *values, *before.types, *behind.types]),
        (graph.input, inputs),
        (graph.output, outputs),
        (graph.node, nodes),
    ):
        copies = [_copy(each) for each in wanted]
        del field[:]
        field.extend(copies)
    graph.initializer.extend([*before.constants, *behind.constants])
    known = {each.domain for each in model.opset_import}
    for own in fitted.graphs.values():
        for imported in own.opset_import:
            if imported.domain not in known | {"ai.onnx"}:
                known.add(imported.domain)
                model.opset_import.add().CopyFrom(imported)


def _copy(message: onnx.NodeProto | onnx.ValueInfoProto) -> onnx.NodeProto | onnx.ValueInfoProto:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _value_info(
    name: str, dtype: str, shape: Sequence[int | str | None] | None
) -> onnx.ValueInfoProto:
    kind = (
        onnx.TensorProto.STRING
        if dtype == "string"
        else onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    )
    return onnx.helper.make_tensor_value_info(name, kind, None if shape is None else list(shape))


class CutError(ValueError):
    """A pipeline whose operations can't be separated from its model's nodes."""


@dataclass(frozen=True, slots=True)
class SplitPipeline:
    """A pipeline in parts; names of values are those of the merged graph.

    Attributes:
        before: From raw inputs to the model's; None where there is no preprocessing.
        behind: From the model's values to results; None where there is no postprocessing.
        inputs: Input of the model -> value of the merged graph.
        outputs: Output of the model -> value of the merged graph.
    """

    before: onnx.ModelProto | None
    behind: onnx.ModelProto | None
    inputs: dict[str, str]
    outputs: dict[str, str]


def split(merged: onnx.ModelProto, model: onnx.ModelProto) -> SplitPipeline:
    """Return the parts of a pipeline around its model.

    Args:
        merged: What `merge` made.
        model: That it was made of; its weights need not be loaded.

    Raises:
        CutError: Nodes of the model have names like those of operations.
    """
    made = {name for node in merged.graph.node for name in node.output}
    there = made | {each.name for each in merged.graph.input}
    inputs, outputs = (
        {each.name: _inside(each.name, there) for each in values}
        for values in (model.graph.input, model.graph.output)
    )
    values = {inputs[each.name]: each for each in model.graph.input}
    values |= {outputs[each.name]: each for each in model.graph.output}
    values |= {each.name: each for each in (*merged.graph.input, *merged.graph.output)}
    before, behind = (_part(merged, section, values) for section in (PREPROCESS, POSTPROCESS))
    return SplitPipeline(before, behind, inputs, outputs)


def _inside(name: str, there: set[str]) -> str:
    return f"{INSIDE}{name}" if f"{INSIDE}{name}" in there else name


def _part(
    merged: onnx.ModelProto, section: str, values: dict[str, onnx.ValueInfoProto]
) -> onnx.ModelProto | None:
    """The operations of a section as a model; None where there is none."""
    graph = merged.graph
    own = [node for node in graph.node if node.name.startswith(f"{section}/")]
    if not own:
        return None
    made = {name for node in own for name in node.output}
    read = {name for node in own for name in names_read(node)}
    elsewhere = {
        name
        for node in graph.node
        if not node.name.startswith(f"{section}/")
        for name in names_read(node)
    } | {each.name for each in graph.output}
    constants = [each for each in graph.initializer if each.name in read]
    taken = read - made - {each.name for each in constants}
    given = made & elsewhere
    if unknown := (taken | given) - values.keys():
        what = f"'{min(unknown)}' goes from {section} to the model's nodes, and is none of its inputs and outputs"
        raise CutError(what)
    part = onnx.ModelProto(ir_version=merged.ir_version)
    part.opset_import.extend(merged.opset_import)
    part.graph.name = section
    part.graph.node.extend(own)
    part.graph.initializer.extend(constants)
    for field, names in ((part.graph.input, taken), (part.graph.output, given)):
        for name, value in values.items():
            if name in names:
                named = onnx.ValueInfoProto()
                named.CopyFrom(value)
                named.name = name
                field.append(named)
    canonicalize(part)
    return part
