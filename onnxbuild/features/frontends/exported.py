"""An exported program: `model: {exported: FILE.pt2}`, converted to ONNX and held against itself."""

from onnxbuild.expansion.evaluation import baseline_score
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.model_source import ModelSource
from onnxbuild.frontend_steps.shared_steps import module_reference, module_source
from onnxbuild.onnxkit.modules.program_modules import EXPORTED
from onnxbuild.onnxkit.programs.exported import exported_outline

FEATURE = Frontend(
    name=EXPORTED,
    gives_module=True,
    source=module_source,
    reference=module_reference,
    score=baseline_score,
    model_source=ModelSource(
        help="a program of torch.export (.pt2), relative to this file: it says its inputs, the ranges of its axes "
        "and its outputs. It holds code, which runs in fenced steps",
        look=exported_outline,
        suffixes=(".pt2",),
    ),
)
