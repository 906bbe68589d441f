"""A pipeline as a recipe asks for it, and as it fits a model; graphs of the user's own in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.user_code import an, call_entrypoint
from onnxbuild.onnxkit.frameworks import onnx
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import graphs_below, opset_of
from onnxbuild.onnxkit.model.inspect import dimensions, dtype_name
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.processing.checks import check_label_count, least_opset
from onnxbuild.onnxkit.processing.labels import read_labels
from onnxbuild.onnxkit.processing.options import (
    PostprocessOperation,
    PreprocessOperation,
    ProcessingError,
    ValueType,
)
from onnxbuild.onnxkit.processing.plan import (
    InputChain,
    PlannedOperation,
    Results,
    fed_by,
    plan_inputs,
    plan_outputs,
)


def custom_graphs(
    context: StepContext, entrypoint: Entrypoint, opset: int
) -> tuple[onnx.ModelProto, ValueType]:
    """Call the user's callable; return its model, and what that gives.

    Args:
        entrypoint: Returns an onnx.ModelProto of one input and one output, without functions.

    Raises:
        StepError: It returns something else.
    """
    make = context.load(entrypoint)
    made = call_entrypoint(make, entrypoint, context.where, owner="the operation's")
    if not isinstance(made, onnx.ModelProto):
        raise _refused(
            context, entrypoint, f"returned {an(made)}; expected an onnx.ModelProto",
            "return onnx.helper.make_model(...), or `to_model_proto()` of an onnxscript function",
        )  # fmt: skip
    canonicalize(made)
    graph = made.graph
    if (len(graph.input), len(graph.output)) != (1, 1) or made.functions:
        counts = f"{len(graph.input)} inputs, {len(graph.output)} outputs and {len(made.functions)} functions"
        raise _refused(
            context, entrypoint, f"returned a model of {counts}; expected one input and one output",
            "compute one value of one value, with functions inlined (onnx.inliner)",
        )  # fmt: skip
    if opset_of(made) != opset:
        raise _refused(
            context, entrypoint, f"returned a model of opset {opset_of(made)}; expected {opset}",
            f"build it with `opset_imports=[onnx.helper.make_opsetid('', {opset})]`",
        )  # fmt: skip
    (value,) = graph.output
    found = dimensions(value)
    shape = None if found is None else tuple(None if each == "?" else each for each in found)
    return made, ValueType(dtype_name(value.type.tensor_type.elem_type), shape)


def _refused(context: StepContext, entrypoint: Entrypoint, what: str, fix: str) -> StepError:
    return StepError(f"{entrypoint.target} {what}", where=context.where, fix=fix)


def prefixed(
    model: onnx.ModelProto, prefix: str, takes: str, gives: Sequence[str]
) -> onnx.GraphProto:
    """A copy of a model's graph whose names don't clash with others.

    Args:
        prefix: Begins all names inside.
        takes: What its input is called.
        gives: What its outputs are called, in order.
    """
    copy = onnx.GraphProto()
    copy.CopyFrom(model.graph)
    new = {copy.input[0].name: takes}
    new |= {own.name: given for own, given in zip(copy.output, gives, strict=True)}

    def named(name: str) -> str:
        return new.get(name, f"{prefix}/{name}") if name else name

    for graph in graphs_below(copy):
        for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
            value.name = named(value.name)
        for node in graph.node:
            node.name = f"{prefix}/{node.name}"
            for names in (node.input, node.output):
                names[:] = [named(each) for each in names]
    return copy


TOKENIZER = "tokenizer/"
"""Prefix of inputs that hold tokenizers' graphs; PREPROCESS/POSITION follows."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Pipeline of operations around the model, as a recipe declares it.

    Attributes:
        preprocess: In order.
        postprocess: In order.
        outputs: The pipeline's; empty for what no operation takes.
        declared: SECTION/POSITION of an operation -> its file, or its callable.
    """

    preprocess: tuple[PreprocessOperation, ...]
    postprocess: tuple[PostprocessOperation, ...]
    outputs: tuple[str, ...] = ()
    declared: Mapping[str, Entrypoint] = field(default_factory=dict)

    @property
    def entrypoints(self) -> tuple[Entrypoint, ...]:
        """Files and callables of all operations."""
        return tuple(self.declared.values())


@dataclass(frozen=True, slots=True)
class FittedPipeline:
    """A pipeline that fits a model.

    Attributes:
        chains: From raw inputs to the model's.
        results: From the model's outputs to the pipeline's.
        labels: SECTION/POSITION -> the lines of its file.
        graphs: SECTION/POSITION -> what its callable returned, or the tokenizer.
    """

    chains: tuple[InputChain, ...]
    results: Results
    labels: Mapping[str, Sequence[str]]
    graphs: Mapping[str, onnx.ModelProto]

    @property
    def operations(self) -> tuple[PlannedOperation, ...]:
        """Operations of the chains, then of the results, in order."""
        before = (each for chain in self.chains for each in chain.operations)
        return (*before, *self.results.operations)


def raw_inputs(
    chains: Sequence[InputChain], inputs: Sequence[DummyInput], axes: Sequence[Axis]
) -> tuple[tuple[DummyInput, ...], tuple[Axis, ...]]:
    """The pipeline's inputs, and the axes that they use.

    Args:
        chains: From raw inputs to the model's.
        inputs: The model's, as the recipe declares them.
    """
    sources = {feed.input: each.source for each in chains for feed in each.feeds}
    raw = tuple(dict.fromkeys(sources.get(each.name, each) for each in inputs))
    known = (*axes, *(axis for chain in chains for axis in chain.axes))
    used = {part.strip() for each in raw for size in each.shape for part in str(size).split("+")}
    return raw, tuple(axis for axis in known if axis.name in used)


def fit(context: StepContext, pipeline: Pipeline, model: onnx.ModelProto) -> FittedPipeline:
    """Fit a pipeline to a model: files are read, callables are called.

    Raises:
        StepError: An operation does not fit, or a file or callable is not what it needs.
    """
    labels, graphs, custom = {}, {}, {}
    for place, entrypoint in pipeline.declared.items():
        section, _, position = place.partition("/")
        operation = getattr(pipeline, section)[int(position)]
        if operation.model is None:
            labels[place] = read_labels(*context.files(entrypoint)[0], context.where)
        else:
            graphs[place], custom[place] = custom_graphs(context, entrypoint, opset_of(model))
    graphs |= tokenizers(context)
    inputs, outputs = (_types(each) for each in (model.graph.input, model.graph.output))
    try:
        chains = plan_inputs(pipeline.preprocess, inputs, custom)
        results = plan_outputs(pipeline.postprocess, inputs, outputs, pipeline.outputs, custom)
        fitted = FittedPipeline(chains, results, labels, graphs)
        _check_names(chains, results, inputs)
        _check(fitted, pipeline, opset_of(model))
    except ProcessingError as error:
        place = f", {error.section}[{error.position}]" if error.section else ""
        raise StepError(error.what, where=f"{context.where}{place}", fix=error.fix) from error
    return fitted


def tokenizers(context: StepContext) -> dict[str, onnx.ModelProto]:
    """PREPROCESS/POSITION -> the graph of that tokenizer, of those that the step takes."""
    return {
        place: load_model(context.input(f"{TOKENIZER}{place}"))
        for name in context.input_names
        if (place := name.removeprefix(TOKENIZER)) != name
    }


def _check_names(
    chains: Sequence[InputChain], results: Results, inputs: Mapping[str, ValueType]
) -> None:
    raw = {*(each.source.name for each in chains), *(inputs.keys() - fed_by(chains))}
    for name in results.outputs:
        if name in raw:
            what = f"output '{name}' has the name of an input; a graph's names are unique"
            raise ProcessingError(what, "write another name as `to`")


def _types(values: Sequence[onnx.ValueInfoProto]) -> dict[str, ValueType]:
    return {
        value.name: ValueType(
            dtype_name(value.type.tensor_type.elem_type), _shape(dimensions(value))
        )
        for value in values
    }


def _shape(found: list[int | str] | None) -> tuple[int | str | None, ...] | None:
    return None if found is None else tuple(None if each == "?" else each for each in found)


def _check(fitted: FittedPipeline, pipeline: Pipeline, opset: int) -> None:
    """Check that the model's opset has all operators, and that each class has a label."""
    for each in fitted.operations:
        least = least_opset(each.options)
        if opset < least:
            what = f"{each.name} needs opset {least}; the model has opset {opset}"
            raise ProcessingError(what, f"write `opset: {least}`", each.section, each.position)
        if each.prefix in fitted.labels:
            file = pipeline.declared[each.prefix].files[0]
            try:
                (kind,) = each.takes.values()
                check_label_count(kind, len(fitted.labels[each.prefix]), file)
            except ProcessingError as error:
                raise ProcessingError(
                    error.what, error.fix, each.section, each.position
                ) from error
