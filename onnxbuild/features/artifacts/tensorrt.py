"""`tensorrt`: TensorRT's engines and timing cache, for this very GPU, driver and TensorRT."""

from collections.abc import Iterator

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.core.target import Link, Target
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.artifacts import SECTION, add_artifact, only_in_environments, target_of
from onnxbuild.expansion.feature import AheadOfTimeModel, ArtifactFormat
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.ahead_of_time.options import EngineOptions
from onnxbuild.onnxkit.ahead_of_time.prepared import TENSORRT, engine_options
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import tensorrt_engines

NAME = "tensorrt"


def _artifact(
    scope: Scope, variant: Variant, model: OutputRef, options: EngineOptions
) -> AheadOfTimeModel:
    recipe = scope.recipe
    own = dict(target_of(recipe, TENSORRT).chain[0].options)
    params = tensorrt_engines.EngineParams(recipe.inputs, recipe.axes, own, options)
    inputs = {"model": model, "reference": scope.reference(None, {})}
    made = add_artifact(
        scope, variant, NAME, kind=tensorrt_engines.KIND, params=params, inputs=inputs
    )
    built = {**own, **engine_options(recipe.inputs, recipe.axes, fp16=options.fp16)}
    return AheadOfTimeModel(
        NAME, made, Target(TENSORRT, (Link(TENSORRT, built),)), SessionSettings()
    )


def _faults(parts: Parts) -> Iterator[Fault]:
    if parts.node(SECTION, NAME) is not None and parts.sound(SECTION, NAME):
        yield from only_in_environments(parts, NAME, TENSORRT)


FEATURE = ArtifactFormat(
    name=NAME,
    options=EngineOptions,
    help="`{}` or options: TensorRT's caches, in VARIANT-tensorrt/",
    kinds=(tensorrt_engines.KIND,),
    faults=_faults,
    artifact=_artifact,
)
