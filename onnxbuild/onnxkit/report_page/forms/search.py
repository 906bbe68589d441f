"""Reports of searches: each trial's loss, speed and size, the front, and what was chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onnxbuild.onnxkit.accuracy.sample_outputs import noise_of
from onnxbuild.onnxkit.report_page.blocks import Cell, Cells, Dot, Scatter, Table
from onnxbuild.onnxkit.report_page.forms.reading import report_of
from onnxbuild.onnxkit.report_page.model import Part, ReportSource
from onnxbuild.onnxkit.report_page.words import counted, milliseconds, number, size

_NONE = "-"
_LEAST = 1e-9


def search(sources: Sequence[ReportSource]) -> Iterator[Part]:
    """Yield the trials of each search."""
    for source in sources:
        report = report_of(source)
        trials = report.get("trials") or ()
        if not trials:
            continue
        by_loss = all(each["choosing"].get("cosine_mean") is not None for each in trials)
        blocks: list[Scatter | Table] = []
        dots = tuple(
            _dot(source, report, each, by_loss=by_loss) for each in trials if each.get("latency")
        )
        chosen = f"'{report['chosen']}'" if report["chosen"] else "none"
        if dots:
            by_noise = any(each.get("one_number") for each in trials)
            loss = "noise to signal" if by_noise else "1 - mean cosine"
            what = f"loss: {loss}" if by_loss else "drop of the score"
            blocks.append(
                Scatter(
                    f"{source.bundle}: {counted(len(trials), 'trial')}, {chosen} chosen",
                    "median latency, ms (left is faster)",
                    f"{what} (lower is better)",
                    dots,
                    ("trial", ">latency", ">loss", ">size"),
                    log_y=by_loss,
                    note=f"Goal: {_goal(report['goal'])}. Larger circles are larger files; filled ones are on the front.",
                )
            )
        heads = (
            "trial",
            ">mean cosine",
            ">worst cosine",
            ">drop",
            ">latency",
            ">size",
            "goal",
            "to write it",
        )
        rows = tuple(_row(report, each) for each in trials)
        blocks.append(Table(f"All trials of {source.bundle}", heads, rows, folded=bool(dots)))
        yield Part("search", tuple(blocks))


def _goal(goal: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value:g}" for name, value in goal.items() if value is not None)


def _dot(
    source: ReportSource, report: Mapping[str, Any], each: Mapping[str, Any], *, by_loss: bool
) -> Dot:
    found = each["choosing"]
    loss = 1 - found["cosine_mean"] if by_loss else found.get("drop") or 0.0
    if by_loss and each.get("one_number"):
        loss = noise_of(found["sqnr_db"])
    return Dot(
        each["name"],
        each["latency"],
        max(loss, _LEAST) if by_loss else loss,
        each["size_bytes"],
        source.bundle if each["name"] == report["chosen"] else "",
        each["on_front"],
        (milliseconds(each["latency"]), number(loss), size(each["size_bytes"])),
    )


def _row(report: Mapping[str, Any], each: Mapping[str, Any]) -> Cells:
    found = each["choosing"]
    chosen = each["name"] == report["chosen"]
    state: Cell | str = "met"
    if chosen:
        state = Cell("chosen", "good")
    elif each["missed"]:
        state = Cell("missed", "warn")
    elif each.get("missed_judging"):
        state = Cell("missed where it is judged", "warn")
    return (
        each["name"],
        *(
            _NONE if found.get(key) is None else f"{found[key]:.5f}"
            for key in ("cosine_mean", "cosine_min")
        ),
        _NONE if found.get("drop") is None else number(found["drop"]),
        milliseconds(each["latency"]) if each.get("latency") else _NONE,
        size(each["size_bytes"]),
        state,
        Cell(each["written"], code=True),
    )
