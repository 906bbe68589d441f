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


def test_a_log_axis_of_zeros_alone_can_be_drawn():
    (one, two) = places(drawn([PlotPoint("a", 0.0, 1), PlotPoint("b", 0.0, 2)], log_x=True))
    assert one[0] == two[0]


def test_one_point_stands_in_the_middle():
    for options in ({}, {"log_x": True, "log_y": True}):
        ((x, y),) = places(drawn([PlotPoint("only", 3.0, 7.0)], **options))
        assert (x, y) == ((72 + 836) / 2, -(40 + 500) / 2)


def test_equal_values_are_all_drawn_and_their_labels_stand_apart():
    tree = drawn([PlotPoint(f"twin {n}", 1.0, 1.0) for n in range(6)])
    assert len(set(places(tree))) == 1
    at = [(e.get("x"), e.get("y")) for e in tree.iter(f"{SVG}text") if e.text[:4] == "twin"]
    assert len(set(at)) == 6


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


def test_ticks_are_round_numbers():
    reported = texts(drawn([PlotPoint("a", 0.013, 10), PlotPoint("b", 0.98, 1e3)], log_x=True))
    assert {"0.02", "0.05", "0.1", "0.2", "0.5"} <= set(reported)
    assert {"200", "400", "600", "800", "1000"} <= set(reported)


def test_a_log_axis_of_less_than_a_decade_has_ticks_too():
    reported = texts(drawn([PlotPoint("a", 0.0111, 10), PlotPoint("b", 0.0129, 20)], log_x=True))
    assert {"0.0115", "0.012", "0.0125"} <= set(reported)


def test_however_many_decades_ticks_stay_few():
    tree = drawn([PlotPoint("a", 1e-90, 1), PlotPoint("b", 1e90, 2)], log_x=True)
    assert 6 <= sum(each.get("y") == "518" for each in tree.iter(f"{SVG}text")) <= 13


def test_nothing_to_draw_is_an_empty_frame():
    assert places(drawn([])) == []


def test_equal_numbers_give_equal_bytes():
    points = [PlotPoint("a", 0.1 + 0.2, 1 / 3), PlotPoint("b", 7, 8)]
    first = scatter_svg("t", "x", "y", points, log_x=True)
    assert first == scatter_svg("t", "x", "y", list(points), log_x=True)
    assert not re.search(r"\d\.\d{7}", first)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1e101])
def test_what_lies_nowhere_is_refused_by_name(value):
    with pytest.raises(StepError, match="'broken' can't be drawn"):
        drawn([PlotPoint("broken", value, 1.0)])
