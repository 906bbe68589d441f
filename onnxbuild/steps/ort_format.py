"""A variant as ONNX Runtime's own format, for reduced builds on phones and boards."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.step import ORT_FILE, Outcome, StepContext, StepKind
from onnxbuild.core.target import CPU
from onnxbuild.onnxkit.ahead_of_time.artifact_file import (
    OPERATORS_FILE,
    ArtifactDescription,
    write_description,
)
from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.ahead_of_time.ort_format import REPLAY, convert_to_ort, required_operators
from onnxbuild.onnxkit.host.made_for import this_machine
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.providers import full_name


@dataclass(frozen=True, slots=True)
class OrtFormatParams:
    """Parameters of a conversion."""

    options: OrtFormatOptions


def run(context: StepContext) -> Outcome:
    """Write model.ort, required_operators.config and artifact.json.

    Raises:
        StepError: The model is too large for the format, or ONNX Runtime can't convert it.
    """
    options: OrtFormatOptions = context.params.options
    folder = context.output("artifact")
    phase("converting to ORT format")
    convert_to_ort(context.input("model"), folder, context.scratch, options, context.where)
    operators = required_operators((folder / OPERATORS_FILE).read_text(encoding="utf-8"))
    description = ArtifactDescription(
        kind="ort",
        file=ORT_FILE,
        provider=full_name(CPU),
        config=REPLAY if options.style == "runtime" else {},
        made_for=this_machine() if options.platform == "amd64" else None,
        facts={
            "platform": options.platform,
            "style": options.style,
            "required_operators": operators,
        },
    )
    write_description(folder, description)
    size = (folder / ORT_FILE).stat().st_size
    return Outcome({"size_bytes": size, "required_operators": len(operators)})


KIND = StepKind(
    name="ort-format",
    version=1,
    params=OrtFormatParams,
    inputs=("model",),
    outputs={"artifact": "ort"},
    toolchain=("onnxruntime", "flatbuffers"),
    run=run,
    host_bound=True,
)
"""Host-bound for either platform: ONNX Runtime picks some fusions by what this CPU has kernels for."""
