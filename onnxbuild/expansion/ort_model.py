"""The step that makes a variant's model in ORT format, for all that ask for one."""

from __future__ import annotations

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.core.target import CPU_TARGET
from onnxbuild.expansion.artifacts import add_artifact
from onnxbuild.expansion.feature import AheadOfTimeModel
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.ahead_of_time.ort_format import REPLAY
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import ort_format


def add_ort_model(
    scope: Scope, variant: Variant, model: OutputRef, name: str, options: OrtFormatOptions
) -> AheadOfTimeModel:
    """Add it; `name` is that of what asks for it."""
    params = ort_format.OrtFormatParams(options)
    made = add_artifact(
        scope, variant, name, kind=ort_format.KIND, params=params, inputs={"model": model}
    )
    replayed = SessionSettings(config={**REPLAY} if options.style == "runtime" else {})
    return AheadOfTimeModel(name, made, CPU_TARGET, replayed)
