"""`offline`: ONNX with the graph optimizations of ONNX Runtime done that hold on any CPU."""

from dataclasses import dataclass, replace
from typing import Literal

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.params import option
from onnxbuild.core.recipe import Variant
from onnxbuild.core.step import MODEL_FILE, Outcome, StepContext, StepKind
from onnxbuild.core.target import CPU, CPU_TARGET
from onnxbuild.expansion.artifacts import add_artifact
from onnxbuild.expansion.feature import AheadOfTimeModel, ArtifactFormat
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import settings_of
from onnxbuild.onnxkit.ahead_of_time.artifact_file import ArtifactDescription, write_description
from onnxbuild.onnxkit.ahead_of_time.prepared import save_host_graph
from onnxbuild.onnxkit.model.graphs import all_nodes
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model
from onnxbuild.onnxkit.model.opsets import DEFAULT_DOMAINS
from onnxbuild.onnxkit.sessions.settings import STEADY, SessionSettings
from onnxbuild.providers import full_name

NAME = "offline"


@dataclass(frozen=True, slots=True)
class OfflineOptions:
    """ONNX with the graph optimizations done that hold on any CPU: less to do at load.

    Either level may leave or bring operators of ONNX Runtime's own (com.microsoft), which other
    runtimes don't know; `facts.runtime_operators` in the manifest lists them.
    """

    level: Literal["basic", "extended"] = option(
        "extended",
        help="`basic` folds and removes; `extended` also fuses nodes, mostly into operators of ONNX "
        "Runtime's own (com.microsoft)",
    )
    at_load: Literal["disable", "all"] = option(
        "disable",
        help="what load.py still has optimized: `disable` loads fastest, `all` lays weights out for the "
        "CPU that it finds, which makes convolutions faster",
    )


@dataclass(frozen=True, slots=True)
class OfflineParams:
    """Parameters that decide the graph.

    Attributes:
        options: As the recipe has them.
        session: What of the variant's session decides the graph: config entries.
    """

    options: OfflineOptions
    session: SessionSettings = STEADY


def run(context: StepContext) -> Outcome:
    """Write model.onnx (with external data if weights are large) and artifact.json.

    Raises:
        StepError: ONNX Runtime refuses the model.
    """
    params: OfflineParams = context.params
    folder = context.output("artifact")
    settings = replace(params.session, graph_optimization=params.options.level)
    save_host_graph(context.input("model"), folder, context.scratch, settings, context.where)
    model = load_model(folder, weights="left")
    operators = sorted(
        {
            f"{node.domain}:{node.op_type}"
            for node in all_nodes(model)
            if node.domain not in DEFAULT_DOMAINS
        }
    )
    description = ArtifactDescription(
        kind=NAME,
        file=MODEL_FILE,
        provider=full_name(CPU),
        graph_optimization=params.options.at_load,
        config={key: str(value) for key, value in settings.config.items()},
        facts={"level": params.options.level, "runtime_operators": operators},
    )
    write_description(folder, description)
    return Outcome({"size_bytes": file_bytes(folder), "runtime_operators": len(operators)})


def _artifact(
    scope: Scope, variant: Variant, model: OutputRef, options: OfflineOptions
) -> AheadOfTimeModel:
    """Sizes that the session fixes stay free in the file: each session fixes its own."""
    settings = replace(settings_of(scope.recipe, variant).judged(), free_dimensions={})
    params = OfflineParams(options, settings)
    made = add_artifact(scope, variant, NAME, kind=KIND, params=params, inputs={"model": model})
    return AheadOfTimeModel(
        NAME, made, CPU_TARGET, replace(settings, graph_optimization=options.at_load)
    )


KIND = StepKind(
    name="optimize-offline",
    version=1,
    params=OfflineParams,
    inputs=("model",),
    outputs={"artifact": NAME},
    toolchain=("onnxruntime", "onnx"),
    run=run,
    host_bound=True,
)
"""Host-bound, though the graph runs anywhere: constants are folded with this CPU's kernels, and some
fusions are picked by what it has kernels for."""

FEATURE = ArtifactFormat(
    name=NAME,
    options=OfflineOptions,
    help="`{}` or options: the graph as optimized for any CPU, in VARIANT-offline/",
    kinds=(KIND,),
    artifact=_artifact,
)
