"""The page of a model: its picture, what is in the blocks, and the table of all that."""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.pages.page import render
from onnxbuild.onnxkit.pictures.boxes import NodeSum, short_count
from onnxbuild.onnxkit.pictures.folding import FoldedBlock
from onnxbuild.onnxkit.pictures.heat import NO_HEAT, Heat
from onnxbuild.onnxkit.pictures.precision import PRECISIONS
from onnxbuild.onnxkit.pictures.sections import BlockRow, Pictures

if TYPE_CHECKING:
    import onnx

PACKAGE = "onnxbuild.onnxkit.pictures"

_ROWS_MAX = 150
_ROW_BYTES = 550
_OPERATORS = 5
_WORDS = {
    "fp32": "fp32", "fp16": "fp16, bf16", "int8": "int8", "int4": "int4 and less",
    "other": "integers, booleans, text",
}  # fmt: skip


def model_svg(
    model: onnx.ModelProto, *, heat: Heat = NO_HEAT, label: str = "Graph of the model"
) -> str:
    """Return a model's first picture, for a page that has the CSS of `picture_css`.

    Args:
        model: Large weights are dropped from it.
        heat: What a sensitivity report says.
        label: What the picture is called where it can't be seen.
    """
    return Pictures(model, heat).top_svg(label, linked=False)


def picture_css() -> str:
    """Return the CSS of pictures, which takes its colours from `page.css`."""
    file = resources.files(PACKAGE).joinpath("templates", "picture.css")
    return file.read_text(encoding="utf-8")


def lone_svg(model: onnx.ModelProto, *, heat: Heat = NO_HEAT, label: str) -> str:
    """Return a model's first picture as a file of its own, in light and dark."""
    page = resources.files("onnxbuild.onnxkit.pages").joinpath("templates", "page.css")
    colours = page.read_text(encoding="utf-8").partition("*, *::before")[0]
    style = f"{colours}{picture_css()}svg.model {{ background: var(--card); }}"
    return Pictures(model, heat).top_svg(label, style=style, linked=False)


def model_page(
    model: onnx.ModelProto, title: str, size_bytes: int, *, heat: Heat = NO_HEAT
) -> str:
    """Return a model's page: one HTML file, the same bytes for the same model.

    Args:
        model: Large weights are dropped from it.
        title: `bert:int8`, or a file's name.
        size_bytes: Of the model's files.
        heat: What a sensitivity report says.
    """
    from markupsafe import Markup

    opsets = ", ".join(f"{each.domain or 'ai.onnx'} {each.version}" for each in model.opset_import)
    pictures = Pictures(model, heat)
    top = pictures.top_svg(f"Graph of {title}")
    count = sum(1 for _ in pictures.rows())
    sections = pictures.sections(len(top.encode()) + _ROW_BYTES * min(count, _ROWS_MAX))
    rows = list(pictures.rows())  # which lead to sections that there was room for
    whole = rows[0].found
    values = {
        "title": title,
        "lead": f"{whole.nodes:,} nodes and {whole.parameters:,} parameters. Equal blocks are drawn once; "
        "select a block to see what is in it.",
        "facts": [
            _size_said(size_bytes),
            f"opset {opsets}",
            *([_weights_said(whole)] if whole.parameters else []),
        ],
        "legend": [(name, _WORDS[name]) for name in PRECISIONS if _is_there(pictures.root, name)],
        "heat": f"{heat.measure}, one node in few bits; the worst {heat.most:.3g}" if heat else "",
        "top": {"svg": Markup(pictures.unlinked(top)), "label": f"Graph of {title}"},  # noqa: S704 - escaped
        "sections": sections,
        "remarks": _remarks(pictures, len(rows)),
        "rows": [_shown(each) for each in rows[:_ROWS_MAX]],
    }
    return render(PACKAGE, "view.html.j2", values)


def _size_said(size_bytes: int) -> str:
    mib = size_bytes / (1 << 20)
    return f"{mib:.1f} MiB" if mib >= 1 else f"{size_bytes / (1 << 10):.1f} KiB"


def _weights_said(whole: NodeSum) -> str:
    held = sum(whole.by_precision.values()) or 1
    shares = {name: round(100 * each / held) for name, each in whole.by_precision.items()}
    return "weights " + ", ".join(f"{name} {share} %" for name, share in shares.items() if share)


def _is_there(root: FoldedBlock, precision: str) -> bool:
    return any(node.precision == precision for node in root.everything)


def _remarks(pictures: Pictures, rows: int) -> list[str]:
    found = []
    unread = pictures.unread()
    if unread:
        held = sum(each.bytes for each in unread)
        found.append(
            f"{_several(len(unread), 'constant is', 'constants are')} read by no node: {held:,} bytes."
        )
    dead = sum(node.is_dead for node in pictures.graph.nodes)
    if dead:
        found.append(
            f"{_several(dead, 'node leads', 'nodes lead')} to no output; dashed where drawn."
        )
    if pictures.left_out:
        left = _several(pictures.left_out, "block is", "blocks are")
        found.append(f"{left} not drawn, to keep the page small; the table has all.")
    if rows > _ROWS_MAX:
        found.append(f"The table shows the first {_ROWS_MAX} of {rows} blocks.")
    return found


def _several(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _shown(row: BlockRow) -> dict[str, Any]:
    found = row.found
    kinds = list(found.operators.items())
    more = len(kinds) - _OPERATORS
    said = ", ".join(f"{kind} {count}" for kind, count in kinds[:_OPERATORS])
    return {
        "depth": row.depth * 0.9,
        "name": row.name,
        "address": f"#{row.key}" if row.key else "",
        "copies": row.copies if row.copies > 1 else "",
        "nodes": f"{found.nodes:,}",
        "operators": said + (f", {more} more" if more > 0 else ""),
        "precision": ", ".join(name for name in found.by_precision if name != "other") or "-",
        "parameters": short_count(found.parameters) if found.parameters else "-",
        "bytes": f"{found.bytes:,}" if found.bytes else "-",
        "heat": row.heat,
    }
