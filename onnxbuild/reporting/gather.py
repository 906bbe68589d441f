"""Gather what the store holds of a recipe's build, without running anything."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from onnxbuild.catalog import CATALOG, forms_of_kinds
from onnxbuild.core.address import StepAddress
from onnxbuild.core.errors import UsageError
from onnxbuild.core.graph import Graph
from onnxbuild.core.ports import Store
from onnxbuild.engine.plan import Planned
from onnxbuild.expansion.reported import Reported, reported_in
from onnxbuild.onnxkit.report_page.model import ReportSource


@dataclass(frozen=True, slots=True)
class Built:
    """A graph, and what the store holds of it.

    Attributes:
        graph: Of all recipes.
        planned: Step -> its prospect: its result, or why it has none.
        store: Where the results are.
        root: Folder of what is kept on this machine.
    """

    graph: Graph
    planned: Mapping[str, Planned]
    store: Store
    root: Path


def sources_of(built: Built, recipe: str, bundles: Collection[str] = ()) -> list[ReportSource]:
    """Return the reports of a recipe's steps, those that are missing with the reason.

    Args:
        built: What the store holds.
        recipe: The recipe's name.
        bundles: Show these, and what variants share; empty for all.
    """
    found = reported_in(built.graph, recipe, CATALOG, forms_of_kinds())
    return [_source(built, each) for each in found if not bundles or each.bundle in {"", *bundles}]


def cut_to_bundle(graph: Graph, recipe: str, name: str) -> tuple[Graph, frozenset[str]]:
    """Return what made, judged and measured one bundle, and the names of the bundles to show: it, and what it packages.

    Args:
        graph: That of a request.
        recipe: The bundle's recipe.
        name: The bundle: a variant, or what is made of one.

    Raises:
        UsageError: The graph has nothing of it.
    """
    own = [each for each in graph.deliverables if (each.recipe, each.name) == (recipe, name)]
    names = frozenset(filter(None, (name, *(each.of for each in own))))
    steps = [
        step for step, at in graph.addresses.items() if at.recipe == recipe and at.bundle in names
    ]
    for each in own:
        steps += [ref.step for ref, _ in each.parts]
        steps += [*each.judged_by, *chain.from_iterable(each.measured_by.values())]
    if not steps:
        raise UsageError(f"'{recipe}:{name}' is no longer a part of what was asked for")
    cut = graph.pruned(step for step in steps if graph.resolve(step) in graph.steps)
    kept = tuple(e for e in cut.deliverables if e.recipe == recipe and e.name in names)
    return replace(cut, deliverables=kept), names


def steps_of(graph: Graph, recipe: str) -> dict[str, StepAddress]:
    """Return the steps of a recipe in build order, those that it shares with others, too: name -> its place in this recipe."""
    places: dict[str, StepAddress] = {}
    for name, at in graph.addresses.items():
        if at.recipe == recipe:
            places.setdefault(graph.resolve(name), at)
    return {name: places[name] for name in graph.steps if name in places}


def missing_steps(built: Built, recipe: str) -> list[str]:
    """Return the steps of a recipe that would run, or might: what the page lacks."""
    names = steps_of(built.graph, recipe)
    return [name for name in names if (each := built.planned[name]).reasons or each.after]


def _source(built: Built, each: Reported) -> ReportSource:
    about = (each.form, each.bundle, each.step, each.target, each.is_gate)
    planned = built.planned[each.report.step]
    result = planned.result
    if result is None or each.report.output not in result.outputs:
        return ReportSource(*about, why=_why(planned, built.graph))
    return ReportSource(
        *about,
        files=built.store.paths(result.outputs[each.report.output]),
        findings=result.findings,
    )


def _why(planned: Planned, graph: Graph) -> str:
    if planned.left_out:
        return planned.left_out
    if planned.blocked:
        return (
            f"not run: {_listed([graph.addresses[name].local for name in planned.blocked])} failed"
        )
    if planned.error is not None:
        return planned.error.what
    return "not built as the recipe is now"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names))
