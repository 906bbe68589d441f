"""Reports of the gates on a bundle: from the bundle, or, where a gate fails, from the gates themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator

from onnxbuild.building.wiring import Workspace
from onnxbuild.comparison.sides import GATE, GateFailure, GateReport
from onnxbuild.comparison.stored_build import StoredBuild
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.graph import Deliverable, OutputRef
from onnxbuild.core.step import REPORT_FILE
from onnxbuild.core.target import CPU, Target

_GATES = ("validation", "evaluation", GATE)
"""Inputs of the step that makes a bundle, or what they begin with: `validation/cpu`, `gate/size`."""
_JUDGED = ("model", "program")
"""Inputs of a gate that hold what it judges."""


def gate_failures(each: Deliverable, found: StoredBuild) -> Iterator[GateFailure]:
    """Yield what the gates of a bundle find fault with."""
    names = {ref.step: name for name, ref in _reports(each, found)}
    for name in each.judged_by:
        step = found.graph.resolve(name)
        result = found.results.get(step)
        for finding in result.findings if result is not None else ():
            local = found.graph.addresses[name].local
            yield GateFailure(local, finding.what, *names.get(step, ("", "")))


def gate_reports(
    each: Deliverable, found: StoredBuild, workspace: Workspace
) -> tuple[GateReport, ...]:
    """Return the reports of the gates that have run, as the bundle would have them."""
    reports = []
    for (noun, of), ref in _reports(each, found):
        artifact = _stored(ref, found, workspace)
        if artifact is None:
            continue
        content = json.loads(workspace.store.paths(artifact)[REPORT_FILE].read_bytes())
        if isinstance(content, dict) and "skipped" not in content:
            reports.append(GateReport(noun, of, content))
    return tuple(reports)


def judged_model(each: Deliverable, found: StoredBuild, workspace: Workspace) -> Artifact | None:
    """Return the model that the gates of a bundle judge; None where the store does not have it."""
    for name in each.judged_by:
        inputs = found.graph.steps[found.graph.resolve(name)].inputs
        for key in _JUDGED:
            artifact = _stored(inputs[key], found, workspace) if key in inputs else None
            if artifact is not None:
                return artifact
    return None


def _reports(each: Deliverable, found: StoredBuild) -> Iterator[tuple[tuple[str, str], OutputRef]]:
    """((`validation`, `cpu`), report) of the gates whose reports enter a bundle."""
    graph = found.graph
    for name, ref in graph.steps[graph.resolve(each.bundle.step)].inputs.items():
        noun, _, of = name.partition("/")
        if noun in _GATES:
            step = graph.resolve(ref.step)
            target = getattr(graph.steps[step].params, "target", None)
            own = target.name if isinstance(target, Target) else CPU
            yield (noun, of or own), OutputRef(step, ref.output)


def _stored(ref: OutputRef, found: StoredBuild, workspace: Workspace) -> Artifact | None:
    result = found.results.get(found.graph.resolve(ref.step))
    artifact = None if result is None else result.outputs.get(ref.output)
    return None if artifact is None or workspace.store.faults(artifact) else artifact
