import re
from itertools import combinations
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.plots.scatter_plot import PlotPoint, scatter_svg

SVG = "{http://www.w3.org/2000/svg}"
values = st.floats(-1e100, 1e100) | st.floats(0, 1)


def drawn(points, **options):
    return ET.fromstring(scatter_svg("title", "error", "speed", points, **options))


def places(tree):
    """(x, y) of each point, in the order given; y grows upward."""
    return [(float(each.get("cx")), -float(each.get("cy"))) for each in tree.iter(f"{SVG}circle")]


def texts(tree):
    return [each.text for each in tree.iter(f"{SVG}text")]


@given(st.lists(st.tuples(values, values), min_size=1, max_size=8), st.booleans(), st.booleans())
def test_greater_values_never_stand_further_left_or_lower_and_all_within_the_frame(
    pairs, log_x, log_y
):
    points = [PlotPoint(str(n), x, y) for n, (x, y) in enumerate(pairs)]
    found = places(drawn(points, log_x=log_x, log_y=log_y))
    assert len(found) == len(pairs)
    for axis in (0, 1):
        # ties in the values are ties in the order: sorting by both shows the places in order
        along = sorted(zip((p[axis] for p in pairs), (p[axis] for p in found), strict=True))
        assert [place for _, place in along] == sorted(place for _, place in along)
    assert all(72 <= x <= 836 and -500 <= y <= -40 for x, y in found)


def test_a_log_axis_gives_each_decade_the_same_room():
    points = [PlotPoint(str(n), 10.0**-n, n) for n in range(4)]
    (a, _), (b, _), (c, _), (d, _) = places(drawn(points, log_x=True))
    assert a - b == pytest.approx(b - c, abs=0.11) == pytest.approx(c - d, abs=0.11)
    assert a - b > 100


def test_zero_on_a_log_axis_stands_before_the_least_at_a_mark_of_its_own():
    points = [PlotPoint("fp32", 0.0, 1), PlotPoint("good", 1e-9, 2), PlotPoint("bad", 1e-1, 3)]
    tree = drawn(points, log_x=True)
    (zero, _), (good, _), (bad, _) = places(tree)
    assert zero < good - 20 < good < bad
    marks = {
        each.text: float(each.get("x"))
        for each in tree.iter(f"{SVG}text")
        if each.get("text-anchor") == "middle" and each.get("y") == "518"
    }
    assert marks["0"] == zero
    assert "0" not in texts(drawn(points[1:], log_x=True))


def test_labels_of_a_crowd_do_not_cover_each_other():
    points = [
        PlotPoint(f"balance + gptq + keep {n}, 23.6 MB", 1e-3 + n * 1e-5, 1) for n in range(12)
    ]
    tree = drawn(points, log_x=True)
    boxes = []
    for each in tree.iter(f"{SVG}text"):
        if each.text.startswith("balance"):
            wide = len(each.text) * 6.2
            left = float(each.get("x")) - (wide if each.get("text-anchor") == "end" else 0)
            boxes.append((left, float(each.get("y")), wide))
    assert len(boxes) == 12
    for (x, y, wide), (other_x, other_y, other_wide) in combinations(boxes, 2):
        side_by_side = x + wide <= other_x + 0.2 or other_x + other_wide <= x + 0.2
        assert side_by_side or abs(y - other_y) >= 13.8
    assert all(x >= 72 and x + wide <= 836 for x, _, wide in boxes)


def test_the_front_is_a_line_in_the_order_of_x_by_filled_points():
    points = [PlotPoint("c", 3, 3, True), PlotPoint("no", 2, 0), PlotPoint("a", 1, 1, True)]
    tree = drawn(points)
    (line,) = tree.iter(f"{SVG}polyline")
    (cx, cy), _, (ax, ay) = places(tree)
    assert line.get("points") == f"{ax:.1f},{-ay:.1f} {cx:.1f},{-cy:.1f}"
    fills = [each.get("fill") for each in tree.iter(f"{SVG}circle")]
    assert fills[0] == fills[2] != fills[1]
    assert not list(drawn(points[:2]).iter(f"{SVG}polyline"))


def test_markup_in_names_is_shown_and_not_obeyed():
    tree = ET.fromstring(scatter_svg("<a>&", 'x "<', "y &", [PlotPoint("<b>&amp;</b>", 1, 1)]))
    assert {"<a>&", 'x "<', "y &", "<b>&amp;</b>"} <= set(texts(tree))
    (tip,) = tree.iter(f"{SVG}title")
    assert tip.text == "<b>&amp;</b>: 1, 1"


def test_equal_numbers_give_equal_bytes():
    points = [PlotPoint("a", 0.1 + 0.2, 1 / 3), PlotPoint("b", 7, 8)]
    first = scatter_svg("t", "x", "y", points, log_x=True)
    assert first == scatter_svg("t", "x", "y", list(points), log_x=True)
    assert not re.search(r"\d\.\d{7}", first)


def test_what_lies_nowhere_is_refused_by_name():
    with pytest.raises(StepError, match="'broken' can't be drawn"):
        drawn([PlotPoint("broken", float("nan"), 1.0)])
