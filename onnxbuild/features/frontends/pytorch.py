"""PyTorch: a callable that returns a `torch.nn.Module`, exported to ONNX and held against itself."""

from collections.abc import Iterator

from onnxbuild.core.draft import Draft
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts, key_needs_frontend
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints
from onnxbuild.expansion.evaluation import baseline_score
from onnxbuild.expansion.feature import Frontend, Section
from onnxbuild.expansion.scope import Scope
from onnxbuild.frontend_steps.shared_steps import module_reference, module_source
from onnxbuild.onnxkit.benchmark.baseline import KERAS, PYTORCH, Baseline
from onnxbuild.onnxkit.sources.outline import FORM
from onnxbuild.steps import export, reference

NAME = "pytorch"

_ADVICE = (
    "the export itself differs from PyTorch; compare the exporters:",
    "",
    "export: {exporter: torchscript}   # or dynamo",
)


def _faults(parts: Parts) -> Iterator[Fault]:
    yield from key_needs_frontend(parts, parts.module_frontends, "export")


def _draft(model: object) -> Draft | None:
    """Draft the first recipe of a module that a callable returned."""
    from onnxbuild.onnxkit.drafts.torch_draft import draft_of_module  # `init` alone asks

    return draft_of_module(model)


def _baseline(scope: Scope) -> Baseline:
    """The module as it is; an archive of Keras is one that Keras runs on PyTorch."""
    return Baseline(KERAS if scope.recipe.model.args.get(FORM) == KERAS else PYTORCH)


FEATURE = Frontend(
    name=NAME,
    gives_module=True,
    sections=(
        Section(
            name="export",
            options=export.ExportOptions,
            callables={
                "translations": (
                    "translations",
                    "callable that gives the exporter more operators: torch op -> ONNX function",
                )
            },
        ),
    ),
    kinds=(export.KIND, reference.KIND),
    faults=_faults,
    source=module_source,
    reference=module_reference,
    score=baseline_score,
    baseline=_baseline,
    draft=_draft,
    diagnosis=DiagnosisHints(advice={export.KIND.name: _ADVICE}),
)
