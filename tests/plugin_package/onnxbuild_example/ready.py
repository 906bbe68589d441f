"""The frontend `ready`: a callable that returns an ONNX model, which is also what it is held against."""

from collections.abc import Mapping
from dataclasses import dataclass

from onnxbuild.core.axis import reference_points
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint, Variant
from onnxbuild.core.step import Outcome, StepContext, StepKind
from onnxbuild.expansion.addresses import of_variant, shared
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.reference_plan import taken_axes
from onnxbuild.expansion.scope import Scope, Source
from onnxbuild.frontend_steps.shared_steps import onnx_as_given
from onnxbuild.onnxkit.data.feeds import make_feeds
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.steps import check

MODEL = "model.onnx"


@dataclass(frozen=True)
class TakeParams:
    """The callable."""

    model: Entrypoint


def take(context: StepContext) -> Outcome:
    """Write what the user's callable returns."""
    import onnx

    made = context.load(context.params.model)(**context.params.model.args)
    onnx.save(made, context.output("model") / MODEL)
    write_report(context.output("config"), {})
    return Outcome(metrics={"nodes": len(made.graph.node)})


TAKE = StepKind(
    name="example-take",
    version=1,
    params=TakeParams,
    inputs=(),
    outputs={"model": "onnx-model", "config": "report"},
    toolchain=("onnx",),
    run=take,
    user_code=True,
    entrypoints=lambda params: (params.model,),
)


@dataclass(frozen=True)
class RunParams:
    """The inputs, and the sizes that they take."""

    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]


def run_model(context: StepContext) -> Outcome:
    """Write what the model computes at the seeded points."""
    import onnxruntime

    session = onnxruntime.InferenceSession(
        context.input("model") / MODEL, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_outputs()]
    writer = ReferenceWriter(context.output("reference"))
    for point in reference_points(context.params.axes, (), 0):
        feeds = make_feeds(context.params.inputs, point.sizes, f"0:{point.name}")
        outputs = dict(zip(names, session.run(names, feeds), strict=True))
        writer.add(ReferencePoint(point.name, point.sizes, feeds, outputs))
    return Outcome({"points": writer.finish()})


RUN = StepKind(
    name="example-reference",
    version=1,
    params=RunParams,
    inputs=("model",),
    outputs={"reference": "reference"},
    toolchain=("onnxruntime", "numpy"),
    run=run_model,
    host_bound=True,
)


def _taken(scope: Scope) -> str:
    params = TakeParams(scope.recipe.model)
    return scope.step(shared(scope.recipe, "take"), TAKE, params, section="model")


def _source(scope: Scope) -> Source:
    recipe, taken = scope.recipe, _taken(scope)
    model = OutputRef(taken, "model")
    params = check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, None)
    checked = scope.step(shared(recipe, "check"), check.KIND, params, {"model": model})
    return Source(model, OutputRef(taken, "config"), OutputRef(checked, "report"))


def _reference(scope: Scope, variant: Variant | None, fixed: Mapping[str, int]) -> OutputRef:
    recipe = scope.recipe
    own = bool(fixed) and variant is not None
    address = of_variant(recipe, variant, "reference") if own else shared(recipe, "reference")
    params = RunParams(recipe.inputs, taken_axes(recipe.axes, fixed))
    model = {"model": OutputRef(_taken(scope), "model")}
    return OutputRef(scope.step(address, RUN, params, model), "reference")


FEATURE = Frontend(
    name="ready",
    kinds=(TAKE, RUN),
    source=_source,
    reference=_reference,
    score=lambda _: None,
    baseline=onnx_as_given(lambda scope: OutputRef(_taken(scope), "model")),
)
