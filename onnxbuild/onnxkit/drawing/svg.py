"""Pieces of SVG: text that is safe in XML and in HTML, and rectangles."""

from __future__ import annotations

import re

_NO_TEXT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)
"""Characters that XML has no place for, and those that turn the direction of what follows."""


def escape(text: str) -> str:
    """Return text for an element or an attribute in double quotes; what no document may hold as a box."""
    safe = _NO_TEXT.sub("\ufffd", text)
    safe = safe.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return safe.replace('"', "&quot;").replace("'", "&#39;")


def rect(place: tuple[float, float, float, float], radius: float, name: str) -> str:
    """Return a rectangle with a class.

    Args:
        place: x, y, width, height.
        radius: Of its corners.
        name: The class.
    """
    x, y, width, height = place
    return (
        f'<rect class="{name}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        f'rx="{radius:.1f}"/>'
    )
