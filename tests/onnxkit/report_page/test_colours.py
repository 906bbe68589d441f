"""The hues of variants: each differs clearly from the others in both schemes; what shares one differs in its dashes."""

from __future__ import annotations

import itertools
import math
import re

import pytest

from onnxbuild.onnxkit.report_page.blocks import Lines, Part, Series
from onnxbuild.onnxkit.report_page.page import report_page
from tests.onnxkit.report_page.test_report_page import report_of

LEAST_APART = 0.12
"""OKLab; 0.02 is a difference that people just notice between large patches, and these are dots of four pixels."""

LEAST_APART_FROM_GREY = 0.08
LEAST_CONTRAST = 3.0
"""WCAG 2.2, 1.4.11, of what is needed to understand a graphic."""

NAMES = tuple(f"v{n}" for n in range(11))


def page_of(folder, names=NAMES):
    marks = ("one", "two")
    lines = Lines("score", "build", marks, tuple(Series(n, (0.9, 0.95)) for n in names))
    return report_page([report_of(folder, names=names, more=[Part("history", (lines,))])])


def colours(page, scheme):
    """Name -> hue: the last value of each in the style, of the screen's media."""
    style = page.partition("<style>")[2].partition("</style>")[0]
    style = re.sub(r"@media print \{(?:[^{}]|\{[^{}]*\})*\}", "", style)
    dark = "".join(re.findall(r"@media [^{]*dark\) \{((?:[^{}]|\{[^{}]*\})*)\}", style))
    light = re.sub(r"@media [^{]*\{(?:[^{}]|\{[^{}]*\})*\}", "", style)
    found = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})\b", light))
    if scheme == "dark":
        found |= dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})\b", dark))
    return found


def linear(colour):
    values = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    return [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]


def oklab(colour):
    """Björn Ottosson's OKLab: https://bottosson.github.io/posts/oklab/."""
    r, g, b = linear(colour)
    cones = [
        (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3),
        (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3),
        (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3),
    ]
    rows = (
        (0.2104542553, 0.7936177850, -0.0040720468),
        (1.9779984951, -2.4285922050, 0.4505937099),
        (0.0259040371, 0.7827717662, -0.8086757660),
    )
    return [sum(w * v for w, v in zip(row, cones, strict=True)) for row in rows]


def contrast(one, other):
    light = sorted(
        sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear(each), strict=True))
        for each in (one, other)
    )
    return (light[1] + 0.05) / (light[0] + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hues_of_variants_differ_clearly_from_each_other_and_from_the_card(scheme, tmp_path):
    found = colours(page_of(tmp_path), scheme)
    hues = {f"v{n}": found[f"v{n}"] for n in range(1, 10)}
    for (one, a), (other, b) in itertools.combinations(hues.items(), 2):
        assert math.dist(oklab(a), oklab(b)) >= LEAST_APART, (one, other)
    for name, hue in hues.items():
        assert math.dist(oklab(hue), oklab(found["c6"])) >= LEAST_APART_FROM_GREY, name
        assert contrast(hue, found["card"]) >= LEAST_CONTRAST, name


def test_each_variant_has_a_hue_and_lines_that_share_one_differ_in_their_dashes(tmp_path):
    page = page_of(tmp_path)
    cards = re.findall(r'class="card variant" style="--series:([^"]+)"', page)
    assert cards == [f"var(--v{n % 9 + 1})" for n in range(11)]
    legend = page.partition('<ul class="legend">')[2].partition("</ul>")[0]
    styles = re.findall(r'style="([^"]+)"', legend)
    assert len(styles) == len(set(styles)) == 11
    assert styles[9] == f"{styles[0]};stroke-dasharray:6 4"
    plot = page.partition('aria-label="score"')[2].partition("</svg>")[0]
    assert re.findall(r'<line class="series"[^>]*style="([^"]+)"', plot) == styles
    assert "color-mix" not in page
