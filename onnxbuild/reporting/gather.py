"""Gather what the store holds of a recipe's build, without running anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.catalog import CATALOG, forms_of_kinds
from onnxbuild.core.graph import Graph
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
    """

    graph: Graph
    planned: Mapping[str, Planned]
    store: DiskStore


def sources_of(built: Built, recipe: str) -> list[ReportSource]:
    """Return the reports of a recipe's steps, those that are missing with the reason."""
    found = reported_in(built.graph, recipe, CATALOG, forms_of_kinds())
    return [_source(built, each) for each in found]


def missing_steps(built: Built, recipe: str) -> list[str]:
    """Return the steps of a recipe that would run, or might: what the page lacks."""
    names = dict.fromkeys(
        built.graph.resolve(name)
        for name, at in built.graph.addresses.items()
        if at.recipe == recipe
    )
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
