"""`ort`: ONNX Runtime's own format, for its reduced builds on phones and boards."""

from __future__ import annotations

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.core.target import CPU_TARGET
from onnxbuild.expansion.artifacts import add_artifact
from onnxbuild.expansion.feature import AheadOfTimeModel, ArtifactFormat
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.ahead_of_time.ort_form import ort_fault
from onnxbuild.onnxkit.ahead_of_time.ort_format import REPLAY
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import ort_format


def _artifact(
    scope: Scope, variant: Variant, model: OutputRef, options: OrtFormatOptions
) -> AheadOfTimeModel:
    params = ort_format.OrtFormatParams(options)
    made = add_artifact(
        scope, variant, "ort", kind=ort_format.KIND, params=params, inputs={"model": model}
    )
    replayed = SessionSettings(config={**REPLAY} if options.style == "runtime" else {})
    return AheadOfTimeModel("ort", made, CPU_TARGET, replayed)


FEATURE = ArtifactFormat(
    name="ort",
    options=OrtFormatOptions,
    help="`{}` or options: the variant as `.ort`, in VARIANT-ort/",
    kinds=(ort_format.KIND,),
    artifact=_artifact,
    file_fault=ort_fault,
)
