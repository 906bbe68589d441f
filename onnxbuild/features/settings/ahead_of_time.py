"""`ahead_of_time`: which variants artifacts are made of, and how long each takes to load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnxbuild.core.graph import OutputRef
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion.addresses import load_times_step, shared
from onnxbuild.expansion.artifacts import SECTION
from onnxbuild.expansion.asked import AheadOfTimeOptions
from onnxbuild.expansion.asked_faults import asked_faults
from onnxbuild.expansion.feature import Artifact, Feature, Laid, Section, Subject
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import settings_of
from onnxbuild.steps import load_times


def _laid_ahead(scope: Scope, subject: Subject, artifacts: Sequence[Artifact]) -> Sequence[Laid]:
    recipe, variant = scope.recipe, subject.variant
    if not artifacts or not recipe.section(SECTION, AheadOfTimeOptions).load_times:
        return ()
    settings = settings_of(recipe, variant)
    step = scope.step(
        shared(recipe, load_times_step(variant.name)),
        load_times.KIND,
        load_times.LoadTimesParams(settings),
        {
            "model": subject.model,
            "reference": scope.reference(variant, settings.free_dimensions),
            **{f"artifact/{each.name}": each.made for each in artifacts},
        },
        at=variant.location,
        section=SECTION,
    )
    return (Laid(OutputRef(step, "report"), "load-times.json"),)


def _faults(parts: Parts) -> Iterator[Fault]:
    yield from asked_faults(parts, SECTION)


FEATURE = Feature(
    name=SECTION,
    sections=(Section(name=SECTION, options=AheadOfTimeOptions),),
    kinds=(load_times.KIND,),
    faults=_faults,
    laid_ahead=_laid_ahead,
    released=(load_times.KIND.name,),
)
