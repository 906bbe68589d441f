"""`ort`: ONNX Runtime's own format, for its reduced builds on phones and boards."""

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.expansion.artifacts import add_ort_model
from onnxbuild.expansion.feature import AheadOfTimeModel, ArtifactFormat
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.ahead_of_time.ort_canonical import ort_fault
from onnxbuild.steps import ort_format

NAME = "ort"


def _artifact(
    scope: Scope, variant: Variant, model: OutputRef, options: OrtFormatOptions
) -> AheadOfTimeModel:
    return add_ort_model(scope, variant, model, NAME, options)


FEATURE = ArtifactFormat(
    name=NAME,
    options=OrtFormatOptions,
    help="`{}` or options: the variant as `.ort`, in VARIANT-ort/",
    kinds=(ort_format.KIND,),
    artifact=_artifact,
    file_fault=ort_fault,
)
