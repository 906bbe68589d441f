"""Compare the variants of a build in one small table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxbuild.core.graph import Graph
from onnxbuild.engine.report import Report
from onnxbuild.onnxkit.plots.shown_ratio import UNKNOWN, shown_ratio

NOISY = " ?"
"""After what was measured while others used the machine."""

_ON_DATA = "worst sample"
"""The least cosine on the `fidelity` data; `cosine` is that on what `validate` draws."""

_EQUAL = "equal"
"""The least share of equal elements of an integer, bool or string output."""


def summarize(graph: Graph, report: Report) -> list[dict[str, str]]:
    """A row for each variant that was delivered, cells as text with their units."""
    metrics = _first_metrics(graph, report)
    failed = {failure.step for failure in report.failures}
    rows = []
    for each in graph.deliverables:
        bundle = each.bundle.step
        if bundle not in report.results or bundle in failed:
            continue
        rows.append(_row(each.recipe, each.name, metrics))
    for column in (_EQUAL, _ON_DATA):  # of recipes with such outputs, or with data to compare on
        if all(row[column] == "-" for row in rows):
            for row in rows:
                del row[column]
    return rows


def skipped_targets(graph: Graph, report: Report) -> list[str]:
    """A line for each target that is not there, and for each variant of which none runs on it."""
    lines = []
    absent = _absent(report)
    for name in graph.steps:
        result = report.results.get(name)
        if result is None:
            continue
        kind, metric = graph.steps[name].kind, result.metrics
        if kind == "provider" and metric["absent"]:
            lines.append(f"skipped: {metric['target']}: {metric['absent']}")
        elif kind == "validate" and metric.get("skipped") and metric["skipped"] not in absent:
            at = graph.addresses[name]
            lines.append(f"skipped: {at.recipe}:{at.bundle}: {metric['skipped']}")
    return list(dict.fromkeys(lines))


def _absent(report: Report) -> set[str]:
    """The reasons of targets that are not there at all."""
    return {
        str(each.metrics["absent"]) for each in report.results.values() if "absent" in each.metrics
    }


def _first_metrics(graph: Graph, report: Report) -> dict[tuple[str, str, str], Mapping[str, Any]]:
    """(recipe, bundle, step) -> what it measured on the first target that it ran on."""
    found: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    for name, at in graph.addresses.items():
        result = report.results.get(graph.resolve(name))
        metrics = {} if result is None or at.trial else result.metrics
        if metrics and "skipped" not in metrics:
            found.setdefault((at.recipe, at.bundle, at.step), metrics)
    return found


def _row(
    recipe: str, variant: str, metrics: Mapping[tuple[str, str, str], Mapping[str, Any]]
) -> dict[str, str]:
    def of(step: str, bundle: str = variant) -> Mapping[str, Any]:
        return metrics.get((recipe, bundle, step), {})

    validated, scored = of("validate"), of("evaluate")
    compared = of("fidelity")
    packaged, measured = of("package"), of("benchmark", bundle="")
    latency = measured.get("variants", {}).get(variant, {})
    doubt = NOISY if latency and measured.get("noisy") else ""
    return {
        "recipe": recipe,
        "variant": variant,
        "size": _size(packaged.get("model_bytes")),
        "p50": _number(latency.get("p50_ms"), 1, "ms", 2) + doubt,
        "vs PyTorch": _vs_pytorch(latency, doubt),
        "max abs error": _small(validated.get("max_abs")),
        "cosine": _number(validated.get("cosine_min"), 1, "", 5),
        _EQUAL: _number(validated.get("equal_min"), 1, "", 4),
        _ON_DATA: _number(compared.get("cosine_min"), 1, "", 5),
        "score": _number(scored.get("score"), 1, "", 4),
    }


def _vs_pytorch(latency: Mapping[str, Any], doubt: str) -> str:
    shown = shown_ratio(*(latency.get(key) for key in ("speedup", "speedup_low", "speedup_high")))
    return shown if shown == UNKNOWN else shown + doubt


def _number(value: object, factor: float, unit: str, digits: int) -> str:
    if not isinstance(value, int | float):
        return "-"
    return f"{value * factor:.{digits}f} {unit}".rstrip()


def _size(value: object) -> str:
    """Bytes as MiB, or as KiB where that says more."""
    if not isinstance(value, int):
        return "-"
    mib = value / 2**20
    return f"{mib:.1f} MiB" if mib >= 1 else f"{value / 2**10:.1f} KiB"


def _small(value: object) -> str:
    return f"{value:.1e}" if isinstance(value, int | float) else "-"
