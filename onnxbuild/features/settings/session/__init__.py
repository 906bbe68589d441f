"""`session`: how ONNX Runtime runs a model, written down or searched for."""

from collections.abc import Mapping, Sequence

from onnxbuild.core.graph import OutputRef
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints
from onnxbuild.expansion.feature import Choice, ExtraReport, Feature, Section, Subject
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import SECTION
from onnxbuild.features.settings.session.faults import faults, remarks
from onnxbuild.onnxkit.sessions.settings import SessionOptions
from onnxbuild.steps import session, tune


def _reports_on(scope: Scope, subject: Subject, number: int) -> Mapping[str, OutputRef]:
    """The settings that a search found."""
    target = scope.recipe.targets[number]
    return subject.session.inputs(target, "settings", f"session/{target.name}")


def _laid(
    scope: Scope, subjects: Sequence[Subject], programs: Mapping[str, OutputRef]
) -> Mapping[str, Sequence[ExtraReport]]:
    del scope, programs
    return {
        each.variant.name: [ExtraReport(report, file) for report, file in each.session.reports]
        for each in subjects
    }


FEATURE = Feature(
    name=SECTION,
    sections=(Section(name=SECTION, options=SessionOptions, by_variant=True),),
    kinds=(session.KIND, tune.KIND),
    faults=faults,
    remarks=remarks,
    reports_on=_reports_on,
    laid=_laid,
    choices=(Choice(session.KIND.name),),
    diagnosis=DiagnosisHints(as_written={SECTION: {"graph_optimization": "disable"}}),
)
