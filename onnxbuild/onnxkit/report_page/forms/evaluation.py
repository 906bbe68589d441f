"""Reports of the user's own metric: scores, with the interval that resampling the data gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onnxbuild.onnxkit.report_page.blocks import Strip, Strips
from onnxbuild.onnxkit.report_page.forms.reading import report_of, titled, verdict_of
from onnxbuild.onnxkit.report_page.model import Figure, Part, ReportSource
from onnxbuild.onnxkit.report_page.words import number

_NONE = "-"
_DIGITS = 5


def evaluation(sources: Sequence[ReportSource]) -> Iterator[Part]:
    """Yield verdicts and scores; the reference's own score is a row, and no variant's."""
    reports = [(source, report_of(source)) for source in sources]
    yield Part(
        "verdicts",
        verdicts=tuple(
            verdict_of(source, report, _decisive(report))
            for source, report in reports
            if source.bundle
        ),
        figures=tuple(
            Figure(
                source.bundle,
                "score",
                report["score"],
                _shown(report["score"]),
                "quality",
                "more",
                0,
            )
            for source, report in reports
            if source.bundle and not source.target and report.get("score") is not None
        ),
    )
    strips = tuple(_strip(source, report) for source, report in reports if "score" in report)
    if strips:
        metric = next(report["metric"] for _, report in reports if "score" in report)
        heads = ("model", ">score", ">drop", ">needs at least", ">may drop", ">samples")
        note = (
            "The line is the score, the bar its bootstrap interval; a dot is the score on one resample of "
            f"your data. Metric: {metric.rpartition(':')[2]}, more is better."
        )
        yield Part("score", (Strips("Score on your data", heads, strips, note=note, log=False),))


def _decisive(report: Mapping[str, Any]) -> str:
    if report.get("score") is None:
        return ""
    said = f"score {_shown(report['score'])}"
    if report.get("min") is not None:
        said += f" (at least {report['min']:g})"
    if report.get("drop") is not None:
        said += f", drop {number(report['drop'])}"
        if report.get("max_drop") is not None:
            said += f" (at most {report['max_drop']:g})"
    return said


def _strip(source: ReportSource, report: Mapping[str, Any]) -> Strip:
    low, high = report.get("score_interval") or (None, None)
    drop = report.get("drop")
    scores = (report.get("resampled") or {}).get("scores") or ()
    return Strip(
        titled(source) or "reference",
        source.bundle,
        tuple(scores),
        report["score"],
        low,
        high,
        (
            _NONE if drop is None else number(drop),
            *(
                _NONE if report.get(key) is None else f"{report[key]:g}"
                for key in ("min", "max_drop")
            ),
            f"{report.get('samples', 0):,}",
        ),
    )


def _shown(score: float) -> str:
    return f"{score:.{_DIGITS - 1}f}"
