"""Result of a build as data: each variant's folder, verdicts and metrics; each failure with its place."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from onnxbuild.catalog import all_features
from onnxbuild.core.graph import Deliverable, Graph
from onnxbuild.core.step import MANIFEST_FILE, MODEL_FILE, ORT_FILE
from onnxbuild.engine.report import Report
from onnxbuild.expansion.cells import NONE, Column
from onnxbuild.output.build import (
    FailureRecord,
    FindingRecord,
    ResultRecord,
    VariantRecord,
    VerdictRecord,
)
from onnxbuild.output.error_record import place_of
from onnxbuild.regular_files import read_regular


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


_NAMES = ("recipe", "variant")


class EndedRun(Protocol):
    """A run that has ended; see `api.BuildResult`."""

    @property
    def exit_code(self) -> int:
        """0 only when all was made and passed."""

    @property
    def store(self) -> Path:
        """The store's folder."""

    @property
    def recalled(self) -> Mapping[str, Any] | None:
        """Record that the last good run left, if everything is as it was then; else None."""

    @property
    def graph(self) -> Graph:
        """Graph of the steps that were asked for."""

    @property
    def report(self) -> Report:
        """Report of the run."""


def variant_records(graph: Graph, report: Report, store: Path) -> list[VariantRecord]:
    """Return a record for each variant, artifact, program and package that was asked for.

    Args:
        graph: What was asked for.
    """
    cells = {(row["recipe"], row["variant"]): row for row in summarize(graph, report)}
    failed = {failure.step for failure in report.failures}
    records = []
    for each in graph.deliverables:
        bundle = each.bundle
        is_made = bundle.step in report.results and bundle.step not in failed
        folder = store / "out" / each.recipe / each.name
        verdicts = [_verdict(step, report) for step in each.judged_by if step in graph.steps]
        row = cells.get((each.recipe, each.name), {})
        record: VariantRecord = {
            "recipe": each.recipe,
            "variant": each.name,
            "family": each.family.name,
            "of": each.of,
            "made": is_made,
            "passed": is_made and _passed(verdicts),
            "folder": str(folder) if is_made else None,
            "model": _model_file(folder, each, report) if is_made else None,
            "cells": {title: text for title, text in row.items() if title not in _NAMES},
            "metrics": _metrics(each, graph, report),
            "verdicts": verdicts,
        }
        records.append(record)
    return records


def run_result(result: EndedRun, logs: Mapping[str, str] | None = None) -> ResultRecord:
    """Return a run as its last line of JSON.

    Args:
        logs: Step -> path of its log, of steps that ran in it.
    """
    recalled = result.recalled
    failures: list[FailureRecord] = []
    if recalled is not None:
        rows, skipped = recalled["summary"], recalled["skipped"]
        variants: list[VariantRecord] = json.loads(recalled["variants"])
    else:
        graph, report = result.graph, result.report
        rows, skipped = summarize(graph, report), skipped_targets(graph, report)
        variants = variant_records(graph, report, result.store)
        failures = failure_records(graph, report, logs)
    return {
        "type": "result",
        "exit_code": result.exit_code,
        "store": str(result.store),
        "out": str(result.store / "out"),
        "table": rows,
        "skipped": skipped,
        "variants": variants,
        "failures": failures,
    }


def end_line(result: EndedRun) -> str:
    """Return a run's last line on a terminal: how many steps were built, reused and failed."""
    if result.recalled is not None:
        return f"up to date: {result.recalled['steps']} steps, nothing to do"
    report = result.report
    built, cached = report.passed_of(report.built), report.passed_of(report.cached)
    parts = [f"{len(built)} built", f"{len(cached)} cached"]
    if report.failures:
        parts.append(f"{len(report.failures)} failed")
    missing = len(result.graph.steps) - len(built) - len(cached) - len(report.failures)
    if missing > 0:
        parts.append(f"{missing} not run")
    end = "ok" if result.exit_code == 0 else f"FAILED (exit code {result.exit_code})"
    return f"{end}: {', '.join(parts)}"


def failure_records(
    graph: Graph, report: Report, logs: Mapping[str, str] | None = None
) -> list[FailureRecord]:
    """Return a record for each step that failed, in the order they did.

    Args:
        graph: What was asked for.
        logs: Step -> path of its log, of steps that ran in this run.
    """
    blocked: dict[str, int] = {}
    for need in report.blocked.values():
        blocked[need] = blocked.get(need, 0) + 1
    records = []
    for failure in report.failures:
        file, line, column = place_of(failure.error.where)
        if file is None:
            location = graph.steps[failure.step].location
            file, line, column = location.path, location.line or None, location.column or None
        record: FailureRecord = {
            "step": failure.step,
            "code": failure.exit_code,
            "what": failure.error.what,
            "where": failure.error.where,
            "file": file,
            "line": line,
            "column": column,
            "fix": failure.error.fix,
            "log": (logs or {}).get(failure.step),
            "blocked": blocked.get(failure.step, 0),
        }
        records.append(record)
    return records


def _verdict(step: str, report: Report) -> VerdictRecord:
    result = report.results.get(step)
    failure = next((each for each in report.failures if each.step == step), None)
    found = [] if result is None else list(result.findings)
    findings: list[FindingRecord] = [
        {"what": each.what, "where": each.where, "fix": each.fix} for each in found
    ]
    if failure is not None and not findings:
        error = failure.error
        findings = [{"what": error.what, "where": error.where, "fix": error.fix}]
    is_judged = result is not None or failure is not None
    reason = report.skipped(step)
    state: Literal["passed", "failed", "skipped", "not run"] = "not run"
    if failure is not None or findings:
        state = "failed"
    elif is_judged:
        state = "skipped" if reason else "passed"
    return {
        "step": step,
        "state": state,
        "passed": state == "passed" or step in report.left_out,
        "reason": reason if state == "skipped" else "",
        "findings": findings,
    }


def _passed(verdicts: Sequence[VerdictRecord]) -> bool:
    """Return whether the gates passed that ran, and not all of them were skipped."""
    ran = [each["passed"] for each in verdicts if each["state"] != "skipped"]
    return all(ran) and (bool(ran) or not verdicts)


def _metrics(each: Deliverable, graph: Graph, report: Report) -> dict[str, dict[str, Any]]:
    """Step -> what it measured of this deliverable."""
    own = graph.addresses[each.bundle.step]
    found: dict[str, dict[str, Any]] = {}
    for name in graph.names_by_recipe[own.recipe]:
        at = graph.addresses[name]
        if at.bundle == own.bundle and not at.trial and at.bundle:
            result = report.results.get(graph.resolve(name))
            if result is not None and result.metrics:
                found[at.task_there] = dict(result.metrics)
    for steps in each.measured_by.values():
        for step in steps:
            result = report.results.get(graph.resolve(step))
            measured = {} if result is None else dict(_of_variant(result.metrics, each.name))
            if measured:
                at = graph.addresses[step]
                found[at.task_there] = measured
    return found


def _of_variant(metrics: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    """The part of a measurement of all variants that is about one: its own figures, and what all share."""
    for key, value in metrics.items():
        if key != "variants" or not isinstance(value, Mapping):
            yield key, value
        elif isinstance(value.get(name), Mapping):
            yield from value[name].items()


def _model_file(folder: Path, each: Deliverable, report: Report) -> str | None:
    """The file that is opened, as the folder's manifest says; None where it says none."""
    artifact = report.results[each.bundle.step].outputs.get(each.bundle.output)
    names = set() if artifact is None else {name for name, _ in artifact.files}
    try:
        said = json.loads(read_regular(folder / MANIFEST_FILE)).get("file")
    except (OSError, ValueError, AttributeError):
        said = None
    known = [name for name in (said, MODEL_FILE, ORT_FILE) if isinstance(name, str)]
    return next((str(folder / name) for name in known if name in names), None)
