"""Labels of points: none hides another, on a phone or on a wide screen."""

from __future__ import annotations

import re
from itertools import combinations

import pytest

from onnxbuild.onnxkit.report_page.blocks import Dot, Scatter
from onnxbuild.onnxkit.report_page.charts import scatter

_LINE, _LETTER = 13.0, 6.6
"""Pixels of a line of text, and of a letter, at the most."""

GPT2 = {
    "fp32": (168.0, 0.0, 1.0), "fp16": (181.0, 0.0004, 0.5), "int8": (71.2, 0.031, 0.26),
    "int8-embeddings": (70.4, 0.032, 0.25), "int4-weights": (55.1, 0.087, 0.2),
    "int4-embeddings": (55.3, 0.0872, 0.18), "int4-gptq": (54.8, 0.061, 0.2),
}  # fmt: skip


def plot(points: dict[str, tuple[float, float, float]]) -> str:
    dots = tuple(
        Dot(name, x, y, area, name, on_front="8" in name, cells=(f"{x}",))
        for name, (x, y, area) in points.items()
    )
    return str(scatter(Scatter("t", "ms", "error", dots, ("variant", "ms")), lambda name: "red"))


def boxes(drawn: str, width: float) -> dict[str, tuple[float, float, float, float]]:
    """Label -> left, right, top, bottom in pixels on a plot of that width."""
    text = re.compile(
        r'<text(?: class="strong")? x="([\d.]+)%" y="([\d.]+)" dx="([-\d.]+)" dy="4" text-anchor="(start|end)">(.*?)</text>'
    )
    found = {}
    for x, y, dx, anchor, label in text.findall(drawn):
        begin, wide = float(x) / 100 * width + float(dx), len(label) * _LETTER
        left = begin - wide if anchor == "end" else begin
        found[label] = (left, left + wide, float(y) - _LINE / 2, float(y) + _LINE / 2)
    return found


def discs(drawn: str, width: float) -> dict[str, tuple[float, float, float, float]]:
    circle = re.compile(r'cx="([\d.]+)%" cy="([\d.]+)" r="([\d.]+)"[^>]*><title>(.*?): ')
    return {
        label: (float(x) / 100 * width - float(r), float(x) / 100 * width + float(r), float(y) - float(r), float(y) + float(r))
        for x, y, r, label in circle.findall(drawn)
    }  # fmt: skip


def meets(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


@pytest.mark.parametrize("width", [310, 600, 1100])
def test_labels_of_near_points_hide_neither_each_other_nor_another_point(width):
    drawn = plot(GPT2)
    found, round_ones = boxes(drawn, width), discs(drawn, width)
    assert found.keys() == round_ones.keys() == GPT2.keys()
    for one, other in combinations(GPT2, 2):
        assert not meets(found[one], found[other]), (one, other)
    for label in GPT2:
        hidden = [each for each in GPT2 if each != label and meets(found[label], round_ones[each])]
        assert not hidden, (label, hidden)


@pytest.mark.parametrize("width", [310, 1100])
def test_ten_points_at_one_place_have_ten_labels_that_can_be_read(width):
    found = boxes(plot({f"variant-{n}": (5.0, 1.0, 1.0) for n in range(10)}), width)
    assert len(found) == 10
    assert not any(meets(*pair) for pair in combinations(found.values(), 2))
    assert all(top >= 0 and bottom <= 300 for _, _, top, bottom in found.values())
