"""ONNX Runtime's own profile of a variant: the time that each node takes."""

from collections.abc import Iterator, Mapping, Sequence

from onnxbuild.core.graph import OutputRef
from onnxbuild.expansion.addresses import of_variant
from onnxbuild.expansion.feature import ExtraReport, Feature, Subject
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import measured_at, options_of, target_inputs
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import profile


def _laid(
    scope: Scope,
    subjects: Sequence[Subject],
    programs: Mapping[str, OutputRef],  # noqa: ARG001
) -> Mapping[str, Sequence[ExtraReport]]:
    return dict(_profiles(scope, subjects))


def _profiles(
    scope: Scope, subjects: Sequence[Subject]
) -> Iterator[tuple[str, Sequence[ExtraReport]]]:
    """Yield each variant that `session: {profiling: true}` asks for, profiled on the first target."""
    recipe = scope.recipe
    first = recipe.targets[0]
    for variant, session, model in ((s.variant, s.session, s.model) for s in subjects):
        if not options_of(recipe, variant).profiling:
            continue
        step = scope.step(
            of_variant(recipe, variant, "profile"),
            profile.KIND,
            profile.ProfileParams(
                variant=variant.name,
                session=SessionSettings() if session.steps else session.settings,
                **measured_at(recipe, first),
            ),
            {"model": model, **session.inputs(first, "settings"), **target_inputs(scope, first)},
            at=variant.location,
        )
        yield variant.name, (ExtraReport(OutputRef(step, "report"), "profile.json"),)


FEATURE = Feature(
    name="profile", kinds=(profile.KIND,), laid=_laid, shown={profile.KIND.name: "profile"}
)
