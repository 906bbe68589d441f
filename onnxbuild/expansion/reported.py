"""The reports of a recipe's steps that a page shows, and the steps and bundles that they are of."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onnxbuild.core.graph import Graph, OutputRef
from onnxbuild.core.step import StepKind

BUNDLE, PLAIN = "bundle", "plain"
"""The forms of deliverables, and of gates whose feature names none."""

_REPORT = "report"


@dataclass(frozen=True, slots=True)
class Reported:
    """One report.

    Attributes:
        form: The form that shows it.
        bundle: The variant, or what is made of it; empty for a step that variants share.
        step: What the step does: `validate`.
        target: Where it runs; empty for the first target.
        is_gate: Whether it judges the bundle.
        report: The output that holds it.
    """

    form: str
    bundle: str
    step: str
    target: str
    is_gate: bool
    report: OutputRef


def reported_in(
    graph: Graph, recipe: str, kinds: Mapping[str, StepKind], forms: Mapping[str, str]
) -> tuple[Reported, ...]:
    """Return what can be shown of a recipe: the reports of its steps, then its bundles.

    Args:
        graph: One that holds the recipe's steps.
        kinds: Step kinds by name.
        forms: Step kind -> the form of its reports.
    """
    return (*_steps(graph, recipe, kinds, forms), *_bundles(graph, recipe))


def judged_bundles(graph: Graph, recipe: str) -> tuple[str, ...]:
    """Return the names of the recipe's variants, of what is made of them ahead of time, of its programs, and of what holds several."""
    return tuple(
        each.name
        for each in graph.deliverables_by_recipe.get(recipe, ())
        if each.family.runtime or each.holds
    )


def _steps(
    graph: Graph, recipe: str, kinds: Mapping[str, StepKind], forms: Mapping[str, str]
) -> Iterator[Reported]:
    gates = {
        graph.resolve(step)  # an equal step of another recipe may stand for it
        for each in graph.deliverables_by_recipe.get(recipe, ())
        for step in each.judged_by
    }
    for name in graph.names_by_recipe.get(recipe, ()):
        at = graph.addresses[name]
        kind = kinds[graph.steps[graph.resolve(name)].kind]
        is_gate = graph.resolve(name) in gates
        form = forms.get(kind.name, PLAIN if is_gate else "")
        if at.trial or not form:
            continue
        output = _REPORT if _REPORT in kind.outputs else form
        if output in kind.outputs:
            report = OutputRef(graph.resolve(name), output)
            yield Reported(form, at.bundle, at.task, at.target, is_gate, report)


def _bundles(graph: Graph, recipe: str) -> Iterator[Reported]:
    for each in graph.deliverables_by_recipe.get(recipe, ()):
        if not each.family.is_page:
            yield Reported(BUNDLE, each.name, BUNDLE, "", is_gate=False, report=each.bundle)
