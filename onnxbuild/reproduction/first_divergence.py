"""First divergence of a fresh build from the stored one, and what follows from it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from onnxbuild.core.action import ActionResult
from onnxbuild.core.graph import Graph
from onnxbuild.core.step import StepKind
from onnxbuild.engine.report import Failure, Report


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first step, in the graph's order, that a fresh build made in another way.

    Attributes:
        step: Its name.
        output: The first of its outputs that differs; empty if the step failed.
        failure: Why it failed; empty if it did not.
        others: Steps that differ although all that they take is the same.
        followers: How many steps differ, or could not be built, because of these.
    """

    step: str
    output: str
    failure: str
    others: tuple[str, ...]
    followers: int


def comparable(
    graph: Graph, catalog: Mapping[str, StepKind], made: Collection[str] | None = None
) -> Graph:
    """Without the steps that measure times, those that need one of them, and the views.

    Args:
        catalog: Step kinds by name.
        made: The steps that have a result; others are left out, too. None: all have one.
    """
    left_out: set[str] = set()
    for name, step in graph.steps.items():
        needs = {ref.step for ref in step.inputs.values()}
        unmade = made is not None and name not in made
        if unmade or catalog[step.kind].measures or needs & left_out:
            left_out.add(name)
    return Graph(
        steps={name: step for name, step in graph.steps.items() if name not in left_out},
        aliases={alias: name for alias, name in graph.aliases.items() if name not in left_out},
        addresses=graph.addresses,
    )


def first_divergence(graph: Graph, stored: Report, fresh: Report) -> Divergence | None:
    """The first difference of two builds of one graph; None if there is none.

    Args:
        stored: What the ordinary build has: a result for every step of `graph`.
        fresh: What the fresh build did.
    """
    expected = {failure.step for failure in stored.failures}
    failures = {
        failure.step: _message(failure)
        for failure in fresh.failures
        if failure.step not in expected
    }
    unlike = {
        name: output or ""
        for name in graph.steps
        for output in [_unlike_output(stored.results[name], fresh.results.get(name))]
        if output is not None or name in failures
    }
    causes = [
        name
        for name in unlike
        if not any(ref.step in unlike for ref in graph.steps[name].inputs.values())
    ]
    if not causes:
        return None
    first = causes[0]
    return Divergence(
        step=first,
        output=unlike[first],
        failure="" if unlike[first] else failures.get(first, "it was not built"),
        others=tuple(causes[1:]),
        followers=len(unlike) - len(causes),
    )


def _message(failure: Failure) -> str:
    """Return what was wrong, and where if that is not the step."""
    what, where = failure.error.what, failure.error.where
    return what if where in {"", failure.step} else f"{where}: {what}"


def _unlike_output(stored: ActionResult, fresh: ActionResult | None) -> str | None:
    """The first output that differs; empty if there is none at all, None if nothing differs."""
    if fresh is None:
        return ""
    unlike = (
        name
        for name, artifact in stored.outputs.items()
        if name not in fresh.outputs or fresh.outputs[name].sha256 != artifact.sha256
    )
    return next(unlike, None)
