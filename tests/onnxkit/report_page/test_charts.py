"""Charts: labels that can be read, axes, files of their own, and hues of variants that differ clearly."""

import itertools
import math
import re
import xml.etree.ElementTree as ET
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.report_page.blocks import Bar, Bars, Dot, Lines, Part, Scatter, Series
from onnxbuild.onnxkit.report_page.charts import chart_file, scale_of, scatter
from onnxbuild.onnxkit.report_page.page import report_page
from tests.onnxkit.report_page.test_report_page import report_of

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


FINITE = st.floats(-1e9, 1e9).filter(lambda each: each == 0 or abs(each) > 1e-12)


@given(st.lists(FINITE, min_size=1), st.booleans())
def test_every_value_has_a_place_within_the_plot(values, log):
    scale = scale_of(values, log=log)
    assert all(0 <= scale.place(value) <= 100 for value in values)


@given(st.lists(FINITE, min_size=1), st.booleans())
def test_ticks_rise_and_no_two_read_the_same(values, log):
    ticks = scale_of(values, log=log).ticks()
    places = [place for place, _ in ticks]
    assert places == sorted(places)
    assert len({label for _, label in ticks}) == len(ticks)


def test_labels_have_as_many_digits_as_tell_neighbours_apart():
    assert [label for _, label in scale_of([0.9889, 0.9911], log=False).ticks()] == [
        "0.9890",
        "0.9895",
        "0.9900",
        "0.9905",
        "0.9910",
    ]


def test_zero_on_a_logarithmic_axis_has_a_mark_of_its_own_before_the_least():
    scale = scale_of([0.0, 1e-9, 1e-1], log=True)
    assert scale.ticks()[0] == (0.0, "0")
    assert 5 < scale.place(1e-9) < scale.place(1e-1)
    assert "0" not in {label for _, label in scale_of([1e-9, 1e-1], log=True).ticks()}


def file_of(x: float = 1.0, name: str = "<b>&amp;</b>") -> ET.Element:
    dots = (Dot(name, x, 1.0, 0.0, "", on_front=True, cells=("1",)),)
    return ET.fromstring(chart_file(Scatter("<a>&", 'x "<', "y &", dots, ("variant", "x"))))


def test_a_chart_in_a_file_of_its_own_shows_markup_in_names_and_does_not_obey_it():
    texts = {each.text for each in file_of().iter("{http://www.w3.org/2000/svg}text")}
    assert {"<a>&", 'x "<', "y &", "<b>&amp;</b>"} <= texts
    bars = ET.fromstring(chart_file(Bars("t", ("node", "loss"), (Bar("<n>", 0.0), Bar("m", 2.0)))))
    shown = [each.text for each in bars.iter("{http://www.w3.org/2000/svg}text")]
    assert shown == ["t", "<n>", "0", "m", "2"]


def test_a_point_without_a_place_is_refused_by_name():
    with pytest.raises(StepError, match="'broken' can't be drawn"):
        file_of(float("nan"), "broken")


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
