"""`optimized`: ONNX with all that ONNX Runtime does at load done already, for this very CPU."""

from dataclasses import replace

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.core.target import CPU_TARGET
from onnxbuild.expansion.artifacts import add_artifact
from onnxbuild.expansion.feature import AheadOfTimeModel, ArtifactFormat
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import settings_of
from onnxbuild.onnxkit.ahead_of_time.options import OptimizedOptions
from onnxbuild.steps import optimize_for_host


def _artifact(
    scope: Scope,
    variant: Variant,
    model: OutputRef,
    options: OptimizedOptions,  # noqa: ARG001
) -> AheadOfTimeModel:
    settings = settings_of(scope.recipe, variant).judged()
    params = optimize_for_host.HostGraphParams(settings)
    kind = optimize_for_host.KIND
    made = add_artifact(
        scope, variant, "optimized", kind=kind, params=params, inputs={"model": model}
    )
    done = replace(settings, graph_optimization="disable", free_dimensions={})
    return AheadOfTimeModel("optimized", made, CPU_TARGET, done, settings.free_dimensions)


FEATURE = ArtifactFormat(
    name="optimized",
    options=OptimizedOptions,
    help="`{}`: the graph as optimized for this CPU, in VARIANT-optimized/",
    kinds=(optimize_for_host.KIND,),
    artifact=_artifact,
)
