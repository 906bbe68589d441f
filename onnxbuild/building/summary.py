"""Compare the variants of a build in one small table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxbuild.catalog import all_features
from onnxbuild.core.graph import Graph
from onnxbuild.engine.report import Report
from onnxbuild.expansion.cells import NONE, Column


def summarize(graph: Graph, report: Report) -> list[dict[str, str]]:
    """A row for each bundle that was delivered, cells as text with their units."""
    metrics = _first_metrics(graph, report)
    failed = {failure.step for failure in report.failures}
    asked = (column for feature in all_features() for column in feature.columns)
    columns = sorted(asked, key=lambda column: column.place)
    headings = {column: _heading(column, graph, metrics) for column in columns}
    rows = []
    for each in graph.deliverables:
        if (
            each.family.is_page
            or each.bundle.step not in report.results
            or each.bundle.step in failed
        ):
            continue
        own = report.results[each.bundle.step].metrics
        cells = {}
        for column in columns:
            owner = "" if column.of_all else each.name
            steps = (column.step, *column.more)
            found = [
                metrics.get((each.recipe, owner, step), {}) if step else own for step in steps
            ]
            texts = (column.cell(measured, each.name) for measured in found)
            cells[headings[column]] = next((text for text in texts if text != NONE), NONE)
        rows.append({"recipe": each.recipe, "variant": each.name, **cells})
    for column in columns:
        if column.if_any and all(row[headings[column]] == NONE for row in rows):
            for row in rows:
                del row[headings[column]]
    return rows


def _heading(
    column: Column, graph: Graph, metrics: Mapping[tuple[str, str, str], Mapping[str, Any]]
) -> str:
    """A column's heading, by what its steps measured of the recipes' models."""
    recipes = dict.fromkeys(each.recipe for each in graph.deliverables)
    return column.headed([metrics.get((each, "", column.step), {}) for each in recipes])


def skipped_targets(graph: Graph, report: Report) -> list[str]:
    """Return a line for each target that is not there, and for each variant of which none runs on it."""
    lines = []
    compares = {kind for feature in all_features() for kind in feature.diagnosis.compares}
    absent = {str(each.metrics.get("absent", "")) for each in report.results.values()}
    for name in graph.steps:
        result = report.results.get(name)
        if result is None:
            continue
        kind, metric, at = graph.steps[name].kind, result.metrics, graph.addresses[name]
        if metric.get("absent"):
            lines.append(f"skipped: {metric['target']}: {metric['absent']}")
        elif kind in compares and metric.get("skipped", "") not in {"", *absent}:
            lines.append(f"skipped: {at.recipe}:{at.bundle}: {metric['skipped']}")
    return list(dict.fromkeys(lines))


def _first_metrics(graph: Graph, report: Report) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """(recipe, bundle, step) -> what it measured on the first target that it ran on."""
    found: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for name, at in graph.addresses.items():
        result = report.results.get(graph.resolve(name))
        metrics = {} if result is None or at.trial else result.metrics
        if metrics and not isinstance(metrics.get("skipped"), str):
            found.setdefault((at.recipe, at.bundle, at.task), metrics)
    return found
