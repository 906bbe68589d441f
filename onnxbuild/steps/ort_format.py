"""A variant as ONNX Runtime's own format, for reduced builds on phones and boards."""

from dataclasses import dataclass
from pathlib import Path

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
from onnxbuild.onnxkit.model.inspect import summarize
from onnxbuild.onnxkit.model.model_files import file_bytes, load_model
from onnxbuild.onnxkit.ort_mobile.described import sizes_of
from onnxbuild.providers import full_name

_KEPT_BY = {
    "float16": "`style: runtime` keeps them small",
    "bfloat16": "`mode: fp16` with `style: runtime` keeps them small",
}
"""Type of weights that become fp32 -> what does not make them so."""

_LEAST_NOTED_BYTES = 1 << 16


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
    metrics = {"size_bytes": size, "required_operators": len(operators)}
    return Outcome(metrics, notes=_notes(context.input("model"), folder / ORT_FILE))


def _notes(model: Path, written: Path) -> tuple[str, ...]:
    """Return a sentence on weights of 16 bits that have become fp32, for which the CPU has the kernels."""
    before = summarize(load_model(model, weights="left"))["weights_bytes_by_dtype"]
    halves = [dtype for dtype in _KEPT_BY if dtype in before]
    after = sizes_of(written)["weights_bytes_by_dtype"] if halves else {}
    lost = {dtype: before[dtype] - after.get(dtype, 0) for dtype in halves}
    dtype = max(lost, key=lambda each: lost[each], default="")
    if lost.get(dtype, 0) < _LEAST_NOTED_BYTES:
        return ()
    note = (
        f"ONNX Runtime has made fp32 of {lost[dtype] / 1e6:.1f} MB of {dtype} weights: {written.name} has "
        f"{written.stat().st_size / 1e6:.1f} MB, the variant's model {file_bytes(model) / 1e6:.1f} MB; "
        f"{_KEPT_BY[dtype]}, or `format: onnx` of a web package"
    )
    return (note,)


KIND = StepKind(
    name="ort-format",
    version=2,
    params=OrtFormatParams,
    inputs=("model",),
    outputs={"artifact": "ort"},
    toolchain=("onnxruntime", "onnx", "flatbuffers"),
    run=run,
    host_bound=True,
)
"""Host-bound for either platform: ONNX Runtime picks some fusions by what this CPU has kernels for."""
