"""A variant with what an execution provider has compiled of it (EPContext)."""

import dataclasses
from dataclasses import dataclass

from onnxbuild.core.step import GPU, MODEL_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.ahead_of_time.artifact_file import ArtifactDescription, write_description
from onnxbuild.onnxkit.ahead_of_time.prepared import CHOSEN_BY_TIMING, compile_model
from onnxbuild.onnxkit.host.made_for import this_machine
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.model_files import file_bytes
from onnxbuild.providers import full_name

CONTEXT_OPERATOR = "EPContext"


@dataclass(frozen=True, slots=True)
class CompileParams:
    """Parameters of a compilation.

    Attributes:
        provider: Short name.
        provider_options: Its options.
        embed: Whether what was compiled goes into model.onnx.
    """

    provider: str
    provider_options: dict[str, str]
    embed: bool


def run(context: StepContext) -> Outcome:
    """Write model.onnx, files next to it if nothing is embedded, and artifact.json.

    Raises:
        StepError: The provider compiles nothing, is not there, or refuses the model.
    """
    params: CompileParams = context.params
    folder = context.output("artifact")
    phase("compiling with the execution provider")
    operators = compile_model(
        context.input("model"),
        folder,
        context.scratch,
        provider=params.provider,
        options=params.provider_options,
        embed=params.embed,
        where=context.where,
    )
    description = ArtifactDescription(
        kind="compiled",
        file=MODEL_FILE,
        provider=full_name(params.provider),
        provider_options=params.provider_options,
        made_for=this_machine(),
        facts={"operators": operators},
    )
    write_description(folder, description)
    left = sum(count for name, count in operators.items() if name != CONTEXT_OPERATOR)
    return Outcome({"size_bytes": file_bytes(folder), "nodes_left": left})


KIND = StepKind(
    name="compile-model",
    version=1,
    params=CompileParams,
    inputs=("model",),
    outputs={"artifact": "compiled"},
    toolchain=("onnxruntime", "onnx"),
    run=run,
    host_bound=True,
)

KIND_FOR_GPU = dataclasses.replace(
    KIND, name="compile-for-gpu", toolchain=("onnxruntime", "onnx", GPU), differs=CHOSEN_BY_TIMING
)
"""Kind of the step that compiles for a GPU: its model, the driver and TensorRT are in the key."""
