"""Load time of each ahead-of-time model, compared with the portable model's."""

from collections.abc import Sequence

from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.expansion.artifacts import SECTION
from onnxbuild.expansion.feature import AheadOfTimeModel, ExtraReport, Feature, Subject
from onnxbuild.expansion.requested import AheadOfTimeOptions
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import settings_of
from onnxbuild.steps import load_times


def _laid_ahead(
    scope: Scope, subject: Subject, artifacts: Sequence[AheadOfTimeModel]
) -> Sequence[ExtraReport]:
    recipe, variant = scope.recipe, subject.variant
    if not artifacts or not recipe.section(SECTION, AheadOfTimeOptions).load_times:
        return ()
    settings = settings_of(recipe, variant)
    (address,) = _steps_of(recipe, variant)
    step = scope.step(
        address,
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
    return (ExtraReport(OutputRef(step, "report"), "load-times.json"),)


def _steps_of(recipe: Recipe, variant: Variant) -> tuple[StepAddress, ...]:
    return (StepAddress(recipe.name, load_times.KIND.name, about=variant.name),)


FEATURE = Feature(
    name="load_times",
    kinds=(load_times.KIND,),
    laid_ahead=_laid_ahead,
    steps_of=_steps_of,
    shown={load_times.KIND.name: "load-times"},
    released=(load_times.KIND.name,),
)
