"""TensorRT's engines and timing cache for a variant, on this GPU, driver and TensorRT."""

import shutil
from dataclasses import dataclass

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.step import GPU, MODEL_FILE, Outcome, StepContext, StepKind
from onnxbuild.onnxkit.ahead_of_time.artifact_file import ArtifactDescription, write_description
from onnxbuild.onnxkit.ahead_of_time.options import EngineOptions
from onnxbuild.onnxkit.ahead_of_time.prepared import (
    CHOSEN_BY_TIMING,
    FOLDER_OPTIONS,
    TENSORRT,
    build_engines,
    engine_options,
)
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.host.made_for import this_machine
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.model_files import file_bytes
from onnxbuild.providers import full_name


@dataclass(frozen=True, slots=True)
class EngineParams:
    """Parameters of the engines.

    Attributes:
        inputs: The model's.
        axes: Their ranges: an engine holds for these sizes.
        provider_options: Of TensorRT's provider, in the recipe.
        options: What this step is asked for.
    """

    inputs: tuple[DummyInput, ...]
    axes: tuple[Axis, ...]
    provider_options: dict[str, str]
    options: EngineOptions


def run(context: StepContext) -> Outcome:
    """Write the caches, the model that they belong to, and artifact.json.

    Raises:
        StepError: TensorRT is not there, refuses the model, or takes none of its nodes.
    """
    params: EngineParams = context.params
    folder = context.output("artifact")
    own = engine_options(params.inputs, params.axes, fp16=params.options.fp16)
    options = {**params.provider_options, **own}
    points = (point.feeds for point in read_reference(context.input("reference")))
    caches = context.scratch / "caches"
    caches.mkdir()
    phase("building engines")
    made = build_engines(context.input("model"), caches, options, points, context.where)
    shutil.copytree(context.input("model"), folder, dirs_exist_ok=True)
    shutil.copytree(caches, folder, dirs_exist_ok=True)
    description = ArtifactDescription(
        kind="tensorrt",
        file=MODEL_FILE,
        provider=full_name(TENSORRT),
        provider_options=options,
        folder_options=FOLDER_OPTIONS,
        made_for=this_machine(),
        facts={"caches": made},
    )
    write_description(folder, description)
    engines = sum((folder / name).stat().st_size for name in made)
    return Outcome({"size_bytes": file_bytes(folder), "cache_bytes": engines})


KIND = StepKind(
    name="tensorrt-engines",
    version=1,
    params=EngineParams,
    inputs=("model", "reference"),
    outputs={"artifact": "tensorrt"},
    toolchain=("onnxruntime", GPU),
    run=run,
    host_bound=True,
    exclusive=True,
    differs=CHOSEN_BY_TIMING,
)
