"""PyTorch: a callable that returns a `torch.nn.Module`, exported to ONNX and held against itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Variant
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints
from onnxbuild.expansion.evaluation import baseline_score
from onnxbuild.expansion.feature import Frontend, Section
from onnxbuild.expansion.needs_frontend import key_of
from onnxbuild.expansion.reference_plan import SECTION, reference_plan
from onnxbuild.expansion.scope import Scope, Source
from onnxbuild.onnxkit.drafts.torch_draft import draft_of_module
from onnxbuild.steps import check, export, reference

NAME = "pytorch"
_ADVICE = (
    "the export itself differs from PyTorch; compare the exporters:",
    "",
    "export: {exporter: torchscript}   # or dynamo",
)


def _source(scope: Scope) -> Source:
    recipe = scope.recipe
    exported = scope.step(
        shared(recipe, "export"),
        export.KIND,
        export.ExportParams(
            model=recipe.model,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=recipe.axes,
            opset=recipe.opset,
            translations=recipe.entrypoints.get("translations"),
            options=recipe.section("export", export.ExportOptions),
        ),
        section="model",
    )
    checked = scope.step(
        shared(recipe, "check"),
        check.KIND,
        check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, recipe.opset),
        {"model": OutputRef(exported, "model")},
        section="dynamic_axes",
    )
    return Source(
        OutputRef(exported, "model"), OutputRef(exported, "config"), OutputRef(checked, "report")
    )


def _reference(scope: Scope, variant: Variant | None, fixed: Mapping[str, int]) -> OutputRef:
    """What PyTorch computes at several points."""
    recipe = scope.recipe
    plan = reference_plan(recipe, variant, fixed)
    step = scope.step(
        plan.address,
        reference.KIND,
        reference.ReferenceParams(
            model=recipe.model,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=plan.axes,
            samples=plan.samples,
            options=plan.options,
        ),
        section=SECTION,
    )
    return OutputRef(step, "reference")


def _faults(parts: Parts) -> Iterator[Fault]:
    yield from key_of(parts, NAME, "export")


FEATURE = Frontend(
    name=NAME,
    sections=(
        Section(
            name="export",
            options=export.ExportOptions,
            callables={
                "translations": (
                    "translations",
                    "callable that gives the exporter more operators: torch op -> ONNX function",
                ),
            },
        ),
    ),
    kinds=(export.KIND, reference.KIND),
    faults=_faults,
    source=_source,
    reference=_reference,
    score=baseline_score,
    draft=draft_of_module,
    diagnosis=DiagnosisHints(advice={export.KIND.name: _ADVICE}),
)
