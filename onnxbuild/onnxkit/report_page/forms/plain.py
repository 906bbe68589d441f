"""Reports without a form of their own: the verdict, if it is a gate, and its plain figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnxbuild.onnxkit.report_page.blocks import Table
from onnxbuild.onnxkit.report_page.forms.reading import listed, report_of, titled, verdict_of
from onnxbuild.onnxkit.report_page.model import Part, ReportSource


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
