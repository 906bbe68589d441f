"""Fidelity of a variant: how near it is to the fp32 model on the user's own data."""

from collections.abc import Iterator, Mapping

from onnxbuild.core.graph import OutputRef
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion import cells
from onnxbuild.expansion.addresses import further, of_variant, shared
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints
from onnxbuild.expansion.feature import Column, Feature, Section, Subject
from onnxbuild.expansion.fidelity import SECTION, add_fidelity
from onnxbuild.expansion.fused import fused
from onnxbuild.expansion.scope import Scope
from onnxbuild.steps import baseline, fidelity


def _reports(scope: Scope, subject: Subject) -> Mapping[str, OutputRef]:
    recipe = scope.recipe
    if "fidelity" not in recipe.entrypoints:
        return {}
    return {
        f"fidelity/{target.name}": add_fidelity(
            scope,
            of_variant(recipe, subject.variant, "fidelity", further(recipe, number)),
            subject.variant,
            model=subject.model,
            fp32=fused(scope),
            target=target,
            baseline_at=shared(recipe, "baseline"),
        )
        for number, target in enumerate(recipe.targets)
    }


def _faults(parts: Parts) -> Iterator[Fault]:
    section = parts.node(SECTION)
    if section is None or not isinstance(section.value, dict) or "data" in section.members:
        return
    if section.members and parts.sound(SECTION):
        what = "fidelity has no data; variants are compared with the fp32 model on it"
        yield Fault(what, parts.key_at(SECTION), "add `data: FILE.py:CALLABLE`")


FEATURE = Feature(
    name=SECTION,
    sections=(
        Section(
            name=SECTION,
            options=fidelity.FidelityOptions,
            callables={
                "data": (
                    "fidelity",
                    (
                        "callable that yields real feeds: variants are compared with the fp32 model "
                        "on them"
                    ),
                ),
                "project": (
                    "projection",
                    (
                        "callable: (outputs, feeds) -> array of shape (samples, ...) to compare, such "
                        "as pooled embeddings; left out: all outputs"
                    ),
                ),
            },
        ),
    ),
    kinds=(baseline.KIND, fidelity.KIND),
    faults=_faults,
    shown={fidelity.KIND.name: "fidelity"},
    reports=_reports,
    diagnosis=DiagnosisHints(
        judges=(fidelity.KIND.name,),
        answers=dict.fromkeys(("cosine_mean", "cosine_min", "sqnr_db"), SECTION),
    ),
    columns=(
        Column("worst sample", SECTION, cells.number("cosine_min", 5), place=70, if_any=True),
    ),
)
