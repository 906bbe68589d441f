"""ONNX: a callable that returns a model that is ONNX already, or its path; held against itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.digest import canonical_json
from onnxbuild.core.errors import StepError
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint, Variant
from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.evaluation import baseline_score
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.reference_plan import SECTION as REFERENCE
from onnxbuild.expansion.reference_plan import reference_plan
from onnxbuild.expansion.scope import Scope, Source
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE, reference_feeds
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.data.user_code import an, call_user
from onnxbuild.onnxkit.model.canonical import canonicalize
from onnxbuild.onnxkit.model.checker import checker_faults
from onnxbuild.onnxkit.model.external_data import outside_tensors
from onnxbuild.onnxkit.model.graphs import all_graphs, opset_of
from onnxbuild.onnxkit.model.inspect import dimensions
from onnxbuild.onnxkit.model.interface import interface_faults, unused_inputs
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model, save_model
from onnxbuild.onnxkit.sessions.open import check_loads, open_session
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import check
from onnxbuild.steps.reference import ReferenceOptions

if TYPE_CHECKING:
    import numpy as np
    import onnx

NAME = "onnx"
_EXACT = SessionSettings(graph_optimization="disable").judged()
"""The graph as it was written, node by node."""

_FIRST_IR_WITH_FREE_INITIALIZERS = 4


@dataclass(frozen=True, slots=True)
class ImportOnnxParams:
    """All that steers an import.

    Attributes:
        model: The callable.
        inputs: What the recipe declares.
        outputs: Names in order; empty takes the model's.
    """

    model: Entrypoint
    inputs: tuple[DummyInput, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OnnxReferenceParams:
    """All that steers a reference run."""

    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    samples: Entrypoint | None
    options: ReferenceOptions


def import_onnx(context: StepContext) -> Outcome:
    """Write the model in canonical form, its dynamic axes under the recipe's names.

    Raises:
        StepError: The callable gives no ONNX model, or it is not as declared, or not valid.
    """
    params: ImportOnnxParams = context.params
    folder = context.output("model")
    model = _load(context, params.model)
    model.ir_version = max(model.ir_version, _FIRST_IR_WITH_FREE_INITIALIZERS)
    canonicalize(model)
    name_axes(model, params.inputs)
    faults = interface_faults(model, params.inputs, params.outputs, None)
    unread = [f"input '{name}' is not used by the graph" for name in unused_inputs(model)]
    opset = opset_of(model)
    save_model(model, folder)
    faults += [] if faults else checker_faults(folder, context.scratch)
    if faults:
        first = faults[0]
        where = f"{context.where}, {first.where}"
        raise StepError(f"{params.model.target}: {first.what}", where=where, fix=first.fix)
    check_loads(folder, context.where)
    (context.output("config") / REPORT_FILE).write_bytes(canonical_json({}))
    return Outcome({"opset": opset, "size_bytes": file_bytes(folder)}, notes=tuple(unread))


def _load(context: StepContext, entrypoint: Entrypoint) -> onnx.ModelProto:
    import onnx

    make = context.load(entrypoint)
    made = call_user(lambda: make(**entrypoint.args), entrypoint.target, context.where)
    if isinstance(made, (str, os.PathLike)):
        return load_model(Path(made), weights="mapped")
    if not isinstance(made, onnx.ModelProto):
        raise StepError(
            f"{entrypoint.target} returned {an(made)}; expected the path of an .onnx file, or an "
            "onnx.ModelProto",
            where=context.where,
            fix="return one of these, or write `frontend: pytorch` for a torch.nn.Module",
        )
    if any(True for _ in outside_tensors(made)):
        raise StepError(
            f"{entrypoint.target} returned a model without the weights of its external data",
            where=context.where,
            fix="return the path of its file instead",
        )
    return made


def name_axes(model: onnx.ModelProto, inputs: tuple[DummyInput, ...]) -> None:
    """Give the dynamic dimensions of a model the recipe's names, wherever they stand, in place.

    A dimension without a name gets the recipe's. A name that stands for two of the recipe's axes stays,
    and the interface does not match then.
    """
    declared = {each.name: each.shape for each in inputs}
    names: dict[str, str] = {}
    for value in model.graph.input:
        shape = dimensions(value)
        wanted = declared.get(value.name, ())
        if shape is None or len(shape) != len(wanted):
            continue
        for n, (found, want) in enumerate(zip(shape, wanted, strict=True)):
            if isinstance(found, int) or isinstance(want, int):
                continue
            if found == "?":
                value.type.tensor_type.shape.dim[n].dim_param = want
            else:
                names.setdefault(found, want)
    for graph in all_graphs(model):
        for field in (graph.input, graph.output, graph.value_info):
            for value in field:
                for dim in value.type.tensor_type.shape.dim:
                    if dim.dim_param in names:
                        dim.dim_param = names[dim.dim_param]


def run_reference(context: StepContext) -> Outcome:
    """Write points.json and one .npz a point: what ONNX Runtime computes without optimizations.

    Raises:
        StepError: It fails at a point, an output holds NaN, or a sample is not as declared.
    """
    params: OnnxReferenceParams = context.params
    session = open_session(context.input("model"), settings=_EXACT, where=context.where)
    writer = ReferenceWriter(context.output("reference"))
    samples = 0
    for name, sizes, feeds in reference_feeds(
        context,
        params.inputs,
        params.axes,
        points=params.options.points,
        seed=params.options.seed,
        samples=params.samples,
        max_samples=params.options.max_samples,
    ):
        outputs = run_session(session, feeds, f"{context.where}, point '{name}'")
        _refuse_nan(outputs, name, context.where)
        writer.add(ReferencePoint(name, sizes, feeds, outputs))
        samples += name.startswith(SAMPLE)
    return Outcome({"points": writer.finish(), "samples": samples})


def _refuse_nan(outputs: Mapping[str, np.ndarray], point: str, where: str) -> None:
    import numpy as np

    for name, array in outputs.items():
        if array.dtype.kind == "f" and bool(np.isnan(array).any()):
            raise StepError(
                f"output '{name}' of the model itself holds NaN at point '{point}'",
                where=where,
                fix="give the inputs the values that it expects (`low`, `high`, `fill` in `dummy_inputs`)",
            )


def _source(scope: Scope) -> Source:
    recipe = scope.recipe
    imported = scope.step(
        shared(recipe, "import"),
        IMPORT,
        ImportOnnxParams(recipe.model, recipe.inputs, recipe.outputs),
        section="model",
    )
    model = OutputRef(imported, "model")
    checked = scope.step(
        shared(recipe, "check"),
        check.KIND,
        check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, None),
        {"model": model},
        section="dynamic_axes",
    )
    return Source(model, OutputRef(imported, "config"), OutputRef(checked, "report"))


def _reference(scope: Scope, variant: Variant | None, fixed: Mapping[str, int]) -> OutputRef:
    plan = reference_plan(scope.recipe, variant, fixed)
    step = scope.step(
        plan.address,
        REFERENCE_KIND,
        OnnxReferenceParams(scope.recipe.inputs, plan.axes, plan.samples, plan.options),
        {"model": scope.source().model},
        section=REFERENCE,
    )
    return OutputRef(step, "reference")


def _score(scope: Scope) -> OutputRef | None:
    """The model's own score, without optimizations."""
    return baseline_score(scope, scope.source().model, _EXACT)


def _faults(parts: Parts) -> Iterator[Fault]:
    node = parts.node("frontend")
    if node is not None and node.value == NAME and parts.node("opset") is not None:
        what = "opset is written, and a model of frontend 'onnx' has its own"
        yield Fault(what, parts.key_at("opset"), "remove `opset`")


IMPORT = StepKind(
    name="import-onnx",
    version=1,
    params=ImportOnnxParams,
    inputs=(),
    outputs={"model": "onnx-model", "config": "report"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=import_onnx,
    user_code=True,
    entrypoints=lambda params: (params.model,),
)

REFERENCE_KIND = StepKind(
    name="onnx-reference",
    version=1,
    params=OnnxReferenceParams,
    inputs=("model",),
    outputs={"reference": "reference"},
    toolchain=("onnx", "onnxruntime", "numpy"),
    run=run_reference,
    host_bound=True,
    user_code=True,
    entrypoints=lambda params: () if params.samples is None else (params.samples,),
)

FEATURE = Frontend(
    name=NAME,
    kinds=(IMPORT, REFERENCE_KIND),
    faults=_faults,
    source=_source,
    reference=_reference,
    score=_score,
    is_measured=False,
)
