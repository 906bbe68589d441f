"""Convert a model of a framework to ONNX: in an environment of its own, or an estimator by skl2onnx and onnxmltools."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.digest import canonical_json
from onnxbuild.core.environment import Environment
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import MODEL_FILE, REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.accuracy.validation_fixes import CONVERTER_FAULT
from onnxbuild.onnxkit.converters import frameworks
from onnxbuild.onnxkit.converters.frameworks import Framework
from onnxbuild.onnxkit.converters.run_there import run_there
from onnxbuild.onnxkit.data.feeds import Feeds, make_feeds
from onnxbuild.onnxkit.estimators.boosters import with_categories
from onnxbuild.onnxkit.estimators.convert import convert, parts_of, refuse_unsupported
from onnxbuild.onnxkit.estimators.made import LIGHTGBM, SKLEARN, XGBOOST, make_estimator
from onnxbuild.onnxkit.estimators.outputs import UNKNOWN_CATEGORY, compute, named_outputs
from onnxbuild.onnxkit.estimators.thresholds import conversion_fault
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.graphs import graphs_below, keep, subgraphs
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model, save_model
from onnxbuild.onnxkit.ready_onnx.accept import accept

if TYPE_CHECKING:
    import numpy as np
    import onnx


_NUMBERED = re.compile(r"__\d+(?=[:/.]|$)")
"""tf2onnx: `Transpose__26:0`, `unk__14`; the number is that of a counter of all names."""


@dataclass(frozen=True, slots=True)
class ConvertModelParams:
    """Parameters of a conversion.

    Attributes:
        model: The model's files, or the callable.
        environment: Where the framework is installed.
        opset: Of ONNX's default domain.
        inputs: What the recipe declares, where the framework needs it; else none.
        outputs: The same.
        axes: The same.
    """

    model: Entrypoint
    environment: Environment
    opset: int
    inputs: tuple[DummyInput, ...] = ()
    outputs: tuple[str, ...] = ()
    axes: tuple[Axis, ...] = field(default=())


def _convert(context: StepContext, framework: Framework) -> Outcome:
    """Have the framework's environment write ONNX, and bring it into canonical form."""
    params: ConvertModelParams = context.params
    made = context.scratch / MODEL_FILE
    asked = framework.request(context, params)
    request = {**asked, "opset": params.opset, "model": str(made)}
    phase("converting in the framework's own environment")
    versions = run_there(context, params.environment, framework.convert, request)
    model = load_model(Path(made), weights="mapped")
    phase("bringing it into canonical form")
    settle(model)
    canonicalize(model)
    folder = context.output("model")
    save_model(model, folder)
    return Outcome({"size_bytes": file_bytes(folder), **versions})


def convert_saved_model(context: StepContext) -> Outcome:
    """Write a signature of a SavedModel as ONNX.

    Raises:
        StepError: TensorFlow can't load it, or tf2onnx can't convert it.
    """
    return _convert(context, frameworks.SAVED_MODEL)


def convert_tflite(context: StepContext) -> Outcome:
    """Write a file of TensorFlow Lite as ONNX; raises as `convert_saved_model`."""
    return _convert(context, frameworks.TFLITE)


def convert_jax(context: StepContext) -> Outcome:
    """Write a function of JAX as ONNX.

    Raises:
        StepError: The callable or its function is not as expected, or jax2onnx can't convert it.
    """
    return _convert(context, frameworks.JAX)


@dataclass(frozen=True, slots=True)
class ConvertEstimatorParams:
    """Parameters of a conversion.

    Attributes:
        frontend: `sklearn`, `xgboost` or `lightgbm`.
        model: The callable, or the estimator's file.
        inputs: What the recipe declares.
        outputs: Names in order; empty takes all that the estimator has.
        axes: The recipe's.
        opset: Of ONNX's default domain.
    """

    frontend: str
    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]
    axes: tuple[Axis, ...]
    opset: int


def convert_estimator(context: StepContext) -> Outcome:
    """Write the estimator as ONNX, with the outputs that the recipe names.

    A note says if it computes something else, so that no other step is blamed for it.

    Raises:
        StepError: The estimator can't be had or converted, or the model is not as declared.
    """
    params: ConvertEstimatorParams = context.params
    phase("loading the estimator")
    estimator = make_estimator(context, params.model, params.frontend)
    refuse_unsupported(parts_of(estimator), context.where)
    outputs = named_outputs(estimator, params.outputs, context.where)
    sizes = {axis.name: axis.example for axis in params.axes}
    feeds = with_categories(make_feeds(params.inputs, sizes, 0), params.inputs, estimator)

    def computed(feeds: Feeds) -> dict[str, np.ndarray]:
        return compute(estimator, outputs, params.inputs, feeds, context.where)

    probe = feeds, computed(feeds)
    phase("converting")
    model, names = convert(
        estimator, outputs, params.inputs, opset=params.opset, probe=probe, where=context.where
    )
    shown = type(estimator).__name__
    try:
        outcome = accept(
            context,
            model,
            shown,
            inputs=params.inputs,
            outputs=params.outputs,
            axes=params.axes,
            rename=names,
        )
    except StepError as error:
        fix = UNKNOWN_CATEGORY if "Unknown Category" in error.what else error.fix
        raise StepError(error.what, where=error.where, fix=fix) from error
    phase("comparing it with the estimator")
    fault = conversion_fault(context.output("model"), computed, probe, context.where)
    if not fault:
        return outcome
    report = canonical_json({CONVERTER_FAULT: fault})
    (context.output("config") / REPORT_FILE).write_bytes(report)
    return replace(outcome, notes=(*outcome.notes, _changed(params.frontend, shown, fault)))


def _changed(frontend: str, shown: str, fault: str) -> str:
    converter = "skl2onnx" if frontend == SKLEARN else "onnxmltools"
    return (
        f"{converter} changed what {shown} computes: {fault}; no setting of a variant mends that: take options of "
        "the estimator that its converter supports"
    )


def settle(model: onnx.ModelProto) -> None:
    """Give a graph the order and the names that follow from its structure alone, in place.

    Nodes are in the order in which a walk from the outputs, in their order, leaves them; those that nothing
    needs go. Numbers that a converter counted up are taken off names; names that are equal then are
    counted in the order of the graph. Inputs and outputs keep their names.

    Args:
        model: Of one graph; functions stay as they are.
    """
    _order(model.graph)
    for graph in graphs_below(model.graph):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if _NUMBERED.search(dim.dim_param):
                    dim.ClearField("dim_param")
        del graph.value_info[:]
    _rename(model.graph)


def _order(graph: onnx.GraphProto) -> None:
    nodes = list(graph.node)
    maker = {name: n for n, node in enumerate(nodes) for name in node.output if name}
    order: dict[int, None] = {}
    waiting: list[tuple[int, bool]] = [
        (maker[value.name], False) for value in reversed(graph.output) if value.name in maker
    ]
    while waiting:
        number, is_done = waiting.pop()
        if is_done:
            order[number] = None
        elif number not in order:
            waiting.append((number, True))
            needed = [maker[name] for name in _read_by(nodes[number]) if name in maker]
            waiting += [(each, False) for each in reversed(needed) if each not in order]
    rank = {tuple(nodes[number].output): place for place, number in enumerate(order)}
    keep(graph.node, lambda node: tuple(node.output) in rank)
    graph.node.sort(key=lambda node: rank[tuple(node.output)])


def _read_by(node: onnx.NodeProto) -> Iterator[str]:
    """Yield names of the values that a node and its subgraphs read, in the order of the file."""
    yield from node.input
    for inner in subgraphs(node):
        for graph in graphs_below(inner):
            for each in graph.node:
                yield from each.input
            yield from (value.name for value in graph.output)


def _rename(graph: onnx.GraphProto) -> None:
    kept = {value.name for value in (*graph.input, *graph.output)}
    taken = set(kept)
    new: dict[str, str] = {name: name for name in kept}

    def settled(name: str) -> str:
        if name and name not in new:
            new[name] = _free(_NUMBERED.sub("", name), taken)
            taken.add(new[name])
        return new.get(name, name)

    names_of_nodes: set[str] = set()
    for below in graphs_below(graph):
        for value in (*below.input, *below.output) if below is not graph else ():
            value.name = settled(value.name)
        for node in below.node:
            node.input[:] = [settled(name) for name in node.input]
            node.output[:] = [settled(name) for name in node.output]
            node.name = _free(_NUMBERED.sub("", node.name) or node.op_type, names_of_nodes)
            names_of_nodes.add(node.name)
        for tensor in below.initializer:
            tensor.name = settled(tensor.name)


def _free(name: str, taken: set[str]) -> str:
    """A name, or with the first number that is free."""
    if name not in taken:
        return name
    n = 1
    stem, colon, port = name.partition(":")
    while f"{stem}_{n}{colon}{port}" in taken:
        n += 1
    return f"{stem}_{n}{colon}{port}"


def _kind(
    name: str,
    version: int,
    params: type,
    run: Callable[[StepContext], Outcome],
    *packages: str,
    config: bool = False,
) -> StepKind:
    return StepKind(
        name=f"convert-{name}",
        version=version,
        params=params,
        inputs=(),
        outputs={"model": "onnx-model", **({"config": "report"} if config else {})},
        toolchain=("onnx", *packages),
        run=run,
        user_code=True,
        entrypoints=lambda params: (params.model,),
    )


FRAMEWORKS = {
    framework.name: _kind(framework.kind, 1, ConvertModelParams, run, "numpy", framework.package)
    for framework, run in (
        (frameworks.SAVED_MODEL, convert_saved_model),
        (frameworks.TFLITE, convert_tflite),
        (frameworks.JAX, convert_jax),
    )
}
"""Step kinds by frontend."""


ESTIMATORS = {
    name: _kind(
        name,
        7,
        ConvertEstimatorParams,
        convert_estimator,
        *("onnxruntime", "numpy", *packages, "skl2onnx", "scikit-learn"),
        config=True,
    )
    for name, packages in (
        (SKLEARN, ()),
        (XGBOOST, ("xgboost", "onnxmltools")),
        (LIGHTGBM, ("lightgbm", "onnxmltools")),
    )
}
"""Step kinds by frontend."""
