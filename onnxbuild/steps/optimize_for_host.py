"""A variant as ONNX Runtime has it after optimizing for this very CPU: never the portable model."""

from dataclasses import dataclass, replace

from onnxbuild.core.step import MODEL_FILE, Outcome, StepContext, StepKind
from onnxbuild.core.target import CPU
from onnxbuild.onnxkit.ahead_of_time.artifact_file import ArtifactDescription, write_description
from onnxbuild.onnxkit.ahead_of_time.prepared import save_host_graph, special_operators
from onnxbuild.onnxkit.host.made_for import this_machine
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.model_files import file_bytes
from onnxbuild.onnxkit.sessions.settings import STEADY, SessionSettings
from onnxbuild.providers import full_name


@dataclass(frozen=True, slots=True)
class HostGraphParams:
    """Parameters that decide the graph.

    Attributes:
        session: What of the variant's session decides the graph: free dimensions, config entries.
    """

    session: SessionSettings = STEADY


def run(context: StepContext) -> Outcome:
    """Write model.onnx (with external data if weights are large) and artifact.json.

    Raises:
        StepError: ONNX Runtime refuses the model.
    """
    params: HostGraphParams = context.params
    folder = context.output("artifact")
    settings = replace(params.session, graph_optimization="all")
    phase("optimizing for this machine")
    save_host_graph(context.input("model"), folder, context.scratch, settings, context.where)
    special = special_operators(folder)
    description = ArtifactDescription(
        kind="optimized",
        file=MODEL_FILE,
        provider=full_name(CPU),
        graph_optimization="disable",  # all of it is done
        config={key: str(value) for key, value in settings.config.items()},
        made_for=this_machine(),
        facts={"host_specific_operators": special},
    )
    write_description(folder, description)
    return Outcome({"size_bytes": file_bytes(folder), "host_specific_operators": len(special)})


KIND = StepKind(
    name="optimize-for-host",
    version=1,
    params=HostGraphParams,
    inputs=("model",),
    outputs={"artifact": "optimized"},
    toolchain=("onnxruntime", "onnx"),
    run=run,
    host_bound=True,
)
