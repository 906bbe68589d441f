"""Record a run in the store: what it used, and the reports that it left."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnxbuild.adapters.store.housekeeping import home_of, write_run
from onnxbuild.adapters.store.runs import write_reports
from onnxbuild.building.request import Loaded
from onnxbuild.catalog import forms_of_kinds
from onnxbuild.core.graph import Graph
from onnxbuild.core.step import StepKind
from onnxbuild.engine.report import Report
from onnxbuild.expansion.reported import reported_in

_SUFFIX = ".json"
"""Suffix of files that reports are read from; the others of an artifact are large."""


def record_run(
    root: Path,
    run: str,
    request: str,
    *,
    project: Path,
    loaded: Loaded,
    graph: Graph,
    report: Report,
    catalog: Mapping[str, StepKind],
) -> None:
    """Note a run: for garbage collection, and for later reports.

    Args:
        request: The key of what was asked for.
        catalog: Step kinds by name.
    """
    keys = [each.key for each in report.results.values()]
    if report.built:  # a run that found all of it is no new build
        shown = {each.name: _reports(each.name, graph, report, catalog) for each in loaded.recipes}
        write_reports(root, run, {name: rows for name, rows in shown.items() if rows})
    files = loaded.files_by_name(project)
    write_run(
        root, run, request, keys, report.exit_code, recipes=files, project=home_of(root, project)
    )


def _reports(
    recipe: str, graph: Graph, report: Report, catalog: Mapping[str, StepKind]
) -> Sequence[Mapping[str, Any]]:
    rows = []
    for each in reported_in(graph, recipe, catalog, forms_of_kinds()):
        result = report.results.get(each.report.step)
        artifact = None if result is None else result.outputs.get(each.report.output)
        if result is None or artifact is None:
            continue
        files = {
            name: digest.sha256
            for name, digest in artifact.files
            if name.endswith(_SUFFIX) and "/" not in name
        }
        rows.append(
            {
                "form": each.form,
                "bundle": each.bundle,
                "step": each.step,
                "target": each.target,
                "gate": each.is_gate,
                "passed": not result.findings,
                "files": files,
            }
        )
    return rows
