"""Reports on what few bits in each node and block do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onnxbuild.onnxkit.accuracy.sample_outputs import noise_of
from onnxbuild.onnxkit.report_page.blocks import Bar, Bars, Block, Cell, Cells, Paragraph, Table
from onnxbuild.onnxkit.report_page.forms.reading import report_of, titled
from onnxbuild.onnxkit.report_page.model import Part, ReportSource
from onnxbuild.onnxkit.report_page.words import number

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
        tuple(_row(each, ranked) for each in report["nodes"][:_ROWS]),
        folded=True,
    )


def _row(each: Mapping[str, Any], ranked: str) -> Cells:
    loss = _loss(each, ranked)
    said = "not measured alone" if loss is None else number(loss)
    return (Cell(each["name"], code=True), each.get("op_type", ""), each.get("block", ""), said)


def _loss(each: Mapping[str, Any], ranked: str) -> float | None:
    if ranked == "sqnr_db" and each.get("cosine_mean") is not None:
        return noise_of(each["sqnr_db"])
    if each.get("drop") is not None:
        return float(each["drop"])
    return 1 - float(each["cosine_mean"]) if each.get("cosine_mean") is not None else None
