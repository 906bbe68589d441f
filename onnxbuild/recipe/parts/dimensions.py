"""Suggest a symbol for an unknown size in a shape, where other tools have -1 or None."""

from __future__ import annotations

import re

from onnxbuild.document.node import Node, Path

_NAMES = {
    2: ("batch", "sequence"),
    3: ("batch", "sequence", "width"),
    4: ("batch", "channels", "height", "width"),
    5: ("batch", "channels", "depth", "height", "width"),
}
"""Rank -> what its axes are most often."""


def symbol_for(found: object, root: Node, path: Path) -> str:
    """The fix for a dimension that stands for any size; empty for all other faults.

    Args:
        found: The value at `path`.
        root: The recipe.
        path: Of the faulty value.
    """
    match path:
        case ("dummy_inputs", str() as name, "shape", int() as n):
            pass
        case _:
            return ""
    unknown = (isinstance(found, int) and found <= 0) or (
        isinstance(found, str) and _is_any(found)
    )
    if found is not None and not unknown:
        return ""
    shape = root.child("dummy_inputs")
    shape = None if shape is None else shape.child(name)
    shape = None if shape is None else shape.child("shape")
    others = [] if shape is None else [item.value for item in shape.items]
    usual = ("batch",) if n == 0 else _NAMES.get(len(others), ())
    symbol = usual[n] if n < len(usual) and usual[n] not in others else f"size_{n}"
    axes = root.child("dynamic_axes")
    if axes is not None and symbol in axes.members:
        return f"write `{symbol}`"
    return f"write `{symbol}`, and add `{symbol}: {{min: 1, max: 64, example: 2}}` to dynamic_axes"


def _is_any(text: str) -> bool:
    return text.lower() in {"none", "null", "?", "*", "any", "dynamic", "-1", ""} or not re.search(
        r"[A-Za-z1-9]", text
    )
