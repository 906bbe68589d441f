from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.onnxkit.report_page.charts import scale_of

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
