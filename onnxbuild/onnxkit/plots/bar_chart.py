"""A bar chart as SVG: no library, and the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbuild.onnxkit.plots.svg_text import escape

_ROW, _LABELS, _BARS = 18, 320, 420


def bars_svg(title: str, bars: Sequence[tuple[str, float]]) -> str:
    """Horizontal bars from zero.

    Args:
        title: Above them.
        bars: (label, value >= 0), drawn in this order.
    """
    most = max((value for _, value in bars), default=0.0) or 1.0
    height = _ROW * (len(bars) + 2)
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LABELS + _BARS + 100}" '
            f'height="{height}" font-family="sans-serif" font-size="12">'
        ),
        f'<text x="8" y="{_ROW}" font-weight="bold">{escape(title)}</text>',
    ]
    for number, (label, value) in enumerate(bars, 2):
        middle, top = number * _ROW - 4, number * _ROW - 15
        lines += [
            f'<text x="{_LABELS - 8}" y="{middle}" text-anchor="end">{escape(label)}</text>',
            (
                f'<rect x="{_LABELS}" y="{top}" width="{value / most * _BARS:.1f}" height="13" '
                'fill="#4477aa"/>'
            ),
            f'<text x="{_LABELS + 6 + value / most * _BARS:.1f}" y="{middle}">{value:.3g}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])
