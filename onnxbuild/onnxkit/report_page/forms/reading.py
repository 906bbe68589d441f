"""Reports as they are read, and those without a form of their own: the verdict and plain figures."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onnxbuild.core.step import REPORT_FILE
from onnxbuild.onnxkit.drawing.numbers import number
from onnxbuild.onnxkit.report_page.blocks import GateVerdict, Part, ReportSource, Table


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


def plain(sources: Sequence[ReportSource]) -> Iterator[Part]:
    """Yield verdicts."""
    found = []
    for source in sources:
        report = report_of(source)
        if source.is_gate and source.bundle:
            metrics = report.get("metrics")
            figures = listed(metrics) if isinstance(metrics, dict) else "no findings"
            found.append(verdict_of(source, report, figures if not source.findings else ""))
    yield Part("verdicts", verdicts=tuple(found))


def load_times(sources: Sequence[ReportSource]) -> Iterator[Part]:
    """Yield how long models made ahead of time take to load."""
    for source in sources:
        models = report_of(source).get("models") or {}
        keys = tuple(
            dict.fromkeys(
                k
                for each in models.values()
                for k, v in each.items()
                if isinstance(v, int | float)
            )
        )
        rows = tuple(
            (name, *(f"{each[key]:,.6g}" if key in each else "" for key in keys))
            for name, each in models.items()
        )
        if rows:
            title = f"Loading what is made ahead of time: {titled(source)}"
            yield Part("cost", (Table(title, ("model", *(f">{key}" for key in keys)), rows),))
