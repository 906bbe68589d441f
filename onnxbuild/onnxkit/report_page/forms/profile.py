"""Reports of ONNX Runtime's profile: the time that operators and nodes take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onnxbuild.onnxkit.report_page.blocks import Bar, Bars, Block, Cell, Table
from onnxbuild.onnxkit.report_page.forms.reading import report_of, titled
from onnxbuild.onnxkit.report_page.model import Part, ReportSource
from onnxbuild.onnxkit.report_page.words import milliseconds

_SHOWN = 12


def profile(sources: Sequence[ReportSource]) -> Iterator[Part]:
    """Yield the slowest operators and nodes at each point."""
    for source in sources:
        for point, found in report_of(source).get("points", {}).items():
            yield Part("placement", tuple(_blocks(f"{titled(source)} at {point}", source, found)))


def _blocks(title: str, source: ReportSource, found: Mapping[str, Any]) -> Iterator[Block]:
    yield Bars(
        f"Time by operator: {title}",
        ("operator", "ms per run"),
        tuple(
            Bar(f"{each['operator']} ({_nodes(each['nodes'])})", each["ms"], source.bundle)
            for each in found["operators"][:_SHOWN]
        ),
    )
    rows = tuple(
        (Cell(each["node"], code=True), each["operator"], milliseconds(each["ms"]))
        for each in found["nodes"]
    )
    yield Table(f"Slowest nodes: {title}", ("node", "operator", ">per run"), rows, folded=True)


def _nodes(count: float) -> str:
    """`1 node`, `10 nodes`; `2.5 nodes` of a branch that not every run takes."""
    return f"{count:g} node{'' if count == 1 else 's'}"
