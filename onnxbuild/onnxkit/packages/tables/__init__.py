"""A model's signature as a table of Markdown: the same in the README of every package."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbuild.onnxkit.packages.signature import ModelSignature
from onnxbuild.onnxkit.packages.templates import rendered

_MOST_SHOWN = 12


def signature_table(signature: ModelSignature) -> str:
    """Return inputs, outputs, axes and golden inputs; it ends with a newline.

    Args:
        signature: The model's.
    """
    ports = [("input", port) for port in signature.inputs]
    ports += [("output", port) for port in signature.outputs]
    labels = {name: _classes(each) for name, each in signature.labels.items()}
    return rendered(
        __package__ or "",
        "signature.md.j2",
        ports=[
            {
                "side": side,
                "name": _cell(port.name),
                "dtype": port.dtype,
                "shape": _cell(port.shape_text),
                "classes": labels.get(port.name, "") if side == "output" else "",
            }
            for side, port in ports
        ],
        has_classes=bool(labels),
        axes=[{"name": _cell(axis.name), "rule": axis.rule} for axis in signature.axes],
        golden=[f"`{_cell(name)}`" for name in signature.golden],
    )


def _classes(labels: Sequence[str]) -> str:
    """`3: red, green, blue`; a long list in part."""
    shown = list(labels)
    if len(shown) > _MOST_SHOWN:
        shown = [*shown[: _MOST_SHOWN - 1], "...", shown[-1]]
    return f"{len(labels)}: {', '.join(map(_cell, shown))}"


def _cell(text: str) -> str:
    """Text in a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())
