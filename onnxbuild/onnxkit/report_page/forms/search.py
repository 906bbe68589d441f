"""Reports of searches (each trial, the front, the choice) and of sensitivity (the loss of each node and block)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onnxbuild.core.sizes import counted, size_text
from onnxbuild.onnxkit.accuracy.sample_outputs import noise_of
from onnxbuild.onnxkit.drawing.numbers import milliseconds, number
from onnxbuild.onnxkit.report_page.blocks import (
    Bar,
    Bars,
    Block,
    Cell,
    Cells,
    Dot,
    Paragraph,
    Part,
    ReportSource,
    Scatter,
    Table,
)
from onnxbuild.onnxkit.report_page.forms.reading import report_of, titled

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
            ">perplexity ratio",
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
        (milliseconds(each["latency"]), number(loss), size_text(each["size_bytes"])),
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
        _NONE if found.get("perplexity_ratio") is None else f"{found['perplexity_ratio']:.4f}",
        milliseconds(each["latency"]) if each.get("latency") else _NONE,
        size_text(each["size_bytes"]),
        state,
        Cell(each["written"], code=True),
    )


_BLOCKS, _NODES, _ROWS = 14, 10, 60
_UNITS = {"cosine_mean": "1 - mean cosine", "sqnr_db": "noise to signal"}


def sensitivity(sources: Sequence[ReportSource]) -> Iterator[Part]:
    """Yield the losses of blocks, then of nodes; equal reports once."""
    seen: dict[str, list[str]] = {}
    reports: dict[str, tuple[ReportSource, Mapping[str, Any]]] = {}
    for source in sources:
        report: Mapping[str, Any] = report_of(source)
        if report.get("blocks"):
            key = repr(report)
            seen.setdefault(key, []).append(titled(source) or source.step)
            reports.setdefault(key, (source, report))
    for key, (source, report) in reports.items():
        names = ", ".join(dict.fromkeys(seen[key]))
        yield Part("sensitivity", tuple(_blocks(source, report, names)))


def _blocks(source: ReportSource, report: Mapping[str, Any], names: str) -> Iterator[Block]:
    ranked = report.get("ranked_by") or "cosine_mean"
    unit = _UNITS.get(ranked, "drop of the score")
    together = _loss(report["all"], ranked)
    of_all = "" if together is None else f"; with all of them: {number(together)}"
    yield Paragraph(
        f"{names}: the loss on {report['samples']} samples with one block or node alone in few bits "
        f"({report['rounding']} rounding{of_all}). The longest bars are what to keep in higher precision."
    )
    several = [each for each in report["blocks"] if each["nodes"] > 1] or report["blocks"]
    for title, rows, most in (
        ("Blocks", several, _BLOCKS),
        ("Nodes", [each for each in report["nodes"] if each.get("measured")], _NODES),
    ):
        bars = tuple(
            Bar(each["name"], max(0.0, loss), source.bundle)
            for each in rows[:most]
            if (loss := _loss(each, ranked)) is not None
        )
        if bars:
            yield Bars(f"{title} by loss: {names}", (title.lower().rstrip("s"), unit), bars)
    yield Table(
        f"All nodes: {names}",
        ("node", "operator", "block", f">{unit}"),
        tuple(_loss_row(each, ranked) for each in report["nodes"][:_ROWS]),
        folded=True,
    )


def _loss_row(each: Mapping[str, Any], ranked: str) -> Cells:
    loss = _loss(each, ranked)
    said = "not measured alone" if loss is None else number(loss)
    return (Cell(each["name"], code=True), each.get("op_type", ""), each.get("block", ""), said)


def _loss(each: Mapping[str, Any], ranked: str) -> float | None:
    if ranked == "sqnr_db" and each.get("cosine_mean") is not None:
        return noise_of(each["sqnr_db"])
    if each.get("drop") is not None:
        return float(each["drop"])
    return 1 - float(each["cosine_mean"]) if each.get("cosine_mean") is not None else None
