from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.core.recipe import Axis
from onnxbuild.onnxkit.export.probe_sizes import axis_by_axis, export_sizes, probe_points

RANGES = st.lists(
    st.tuples(st.integers(1, 9), st.integers(0, 99), st.integers(0, 99)), max_size=5
).map(
    lambda rows: [
        Axis(f"a{n}", low, low + span, low + example % (span + 1))
        for n, (low, span, example) in enumerate(rows)
    ]
)


@given(RANGES)
def test_sizes_are_in_range_and_never_1_where_2_is_allowed(axes):
    for point in probe_points(axes):
        for axis in axes if point.name != "min" else []:
            assert axis.min <= point.sizes[axis.name] <= axis.max
            assert point.sizes[axis.name] >= min(2, axis.max)


@given(RANGES.map(lambda axes: [Axis(a.name, 1, a.max + 20, min(a.example, 9)) for a in axes]))
def test_two_axes_never_share_a_size_where_ranges_are_wide(axes):
    for point in probe_points(axes):
        if point.name != "min":
            assert len(set(point.sizes.values())) == len(axes)


def test_equal_examples_are_distinguished_and_an_example_of_1_is_raised():
    axes = [Axis("batch", 1, 8, 1), Axis("sequence", 1, 8, 2)]
    assert export_sizes(axes) == {"batch": 2, "sequence": 3}


def test_each_axis_differs_between_the_two_points_where_it_can():
    axes = [Axis("batch", 1, 2, 2), Axis("sequence", 1, 64, 16), Axis("one", 1, 1, 1)]
    exported, other, least = probe_points(axes)
    assert exported.sizes == {"batch": 2, "sequence": 16, "one": 1}
    assert other.sizes == {"batch": 2, "sequence": 17, "one": 1}
    assert least.sizes == {"batch": 1, "sequence": 1, "one": 1}


def test_without_axes_there_is_one_point():
    assert [point.name for point in probe_points([])] == ["exported"]


def test_axes_are_changed_one_at_a_time():
    axes = [Axis("batch", 1, 8, 2), Axis("sequence", 1, 8, 4)]
    other = probe_points(axes)[1]
    singles = {name: dict(point.sizes) for name, point in axis_by_axis(axes, other)}
    assert singles == {
        "batch": {"batch": 3, "sequence": 4},
        "sequence": {"batch": 2, "sequence": 5},
    }


@given(
    st.integers(1, 8).flatmap(
        lambda step: st.lists(
            st.tuples(st.integers(0, 3), st.integers(8, 30), st.integers(1, 8)),
            min_size=2,
            max_size=4,
        ).map(
            lambda rows: [
                Axis(f"a{n}", low * step, high * step, max(low, example) * step, step)
                for n, (low, high, example) in enumerate(rows)
            ]
        )
    )
)
def test_multiples_are_kept_and_sums_are_apart_from_axes(axes):
    total = "a0 + a1"
    for point in probe_points(axes, [total]):
        assert all(axis.takes(point.sizes[axis.name]) for axis in axes)
        if point.name in ("exported", "other"):
            sizes = [*point.sizes.values(), point.sizes["a0"] + point.sizes["a1"]]
            assert len(set(sizes)) == len(sizes)


def test_an_axis_that_may_be_empty_is_probed_at_0():
    axes = [Axis("past", 0, 8, 4), Axis("sequence", 1, 8, 3)]
    points = {point.name: point.sizes for point in probe_points(axes, ["past + sequence"])}
    assert points["min"] == {"past": 0, "sequence": 1}
    assert points["empty-past"] == {"past": 0, "sequence": 3}
