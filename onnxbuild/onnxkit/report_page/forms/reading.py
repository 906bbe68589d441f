"""Reports as they are read: JSON of a step that made one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onnxbuild.core.step import REPORT_FILE
from onnxbuild.onnxkit.report_page.model import GateVerdict, ReportSource
from onnxbuild.onnxkit.report_page.words import number


def report_of(source: ReportSource, name: str = REPORT_FILE) -> dict[str, Any]:
    """Return a source's JSON; empty if it has no such file, or one that is no JSON object, as plug-ins may write."""
    path = source.files.get(name)
    try:
        found = None if path is None else json.loads(path.read_bytes())
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def verdict_of(source: ReportSource, report: Mapping[str, Any], figures: str = "") -> GateVerdict:
    """Return what a gate says of its bundle.

    Args:
        source: The gate's report.
        report: Its JSON.
        figures: What decides, as text.
    """
    about = (source.bundle, source.step, source.target)
    skipped = report.get("skipped")
    if source.findings or report.get("passed") is False:
        return GateVerdict(*about, "failed", figures, source.findings)
    if isinstance(skipped, str):
        return GateVerdict(*about, "skipped", why=skipped)
    if not source.files:
        return GateVerdict(*about, "not run", why=source.why)
    return GateVerdict(*about, "passed", figures)


def titled(source: ReportSource) -> str:
    """Return the bundle, and the target where it is not the first."""
    return f"{source.bundle} on {source.target}" if source.target else source.bundle


def listed(metrics: Mapping[str, Any]) -> str:
    """Return plain figures as text: `points 13, score 0.98`."""
    return ", ".join(
        f"{name} {number(value)}"
        for name, value in metrics.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    )
