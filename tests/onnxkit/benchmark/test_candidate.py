import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.benchmark import candidate
from onnxbuild.onnxkit.benchmark.candidate import Need, all_fit, memory_groups, peak_growth_bytes

SIZE_BYTES = 64 << 20


def test_memory_that_is_kept_counts():
    held, grown = peak_growth_bytes(lambda: bytearray(b"x") * SIZE_BYTES)
    assert len(held) == SIZE_BYTES
    assert SIZE_BYTES * 0.9 < grown < SIZE_BYTES * 1.5


def test_memory_that_is_freed_before_the_end_counts_too():
    def passing():
        import numpy as np

        for _ in range(5):  # long enough for the sampler, numpy lets other threads run
            np.ones(SIZE_BYTES // 8).cumsum()

    _, grown = peak_growth_bytes(passing)
    assert grown > SIZE_BYTES * 0.9


def test_a_peak_that_could_not_be_sampled_is_an_error_and_no_number(monkeypatch):
    plain, here = candidate._resident, threading.current_thread()

    def resident() -> int:
        if threading.current_thread() is not here:
            raise OSError(38, "Function not implemented")
        return plain()

    monkeypatch.setattr(candidate, "_resident", resident)
    with pytest.raises(OSError, match="Function not implemented"):
        peak_growth_bytes(lambda: time.sleep(0.05))


GIB = 1 << 30
SIZES = st.integers(1, 8 * GIB)
NEEDS = st.builds(lambda kept, more: Need(kept + more, kept), SIZES, SIZES)


def need(steady_gib, peak_gib=None):
    peak_gib = peak_gib or steady_gib
    return Need(int(peak_gib * GIB), int(steady_gib * GIB))


def test_all_are_one_group_where_they_fit():
    needs = {name: need(1) for name in "abc"}
    assert memory_groups(needs, ["a"], 4 * GIB, "x") == [("a", "b", "c")]
    assert memory_groups(needs, (), 4 * GIB, "x") == [("a", "b", "c")]


def test_what_others_are_compared_with_is_in_each_group():
    needs = {
        "pytorch": need(3),
        "fp32": need(3),
        "fp16": need(3),
        "int8": need(1),
        "int4": need(1),
    }
    assert memory_groups(needs, ["pytorch"], 8 * GIB, "x") == [
        ("pytorch", "fp32", "int8"),
        ("pytorch", "fp16", "int4"),
    ]


def test_a_group_holds_its_greatest_peak_too():
    needs = {"a": need(1, 4), "b": need(1, 1), "c": need(1, 4)}
    assert all_fit({"a": needs["a"], "b": needs["b"]}, int(5.6 * GIB))
    assert memory_groups(needs, ["b"], int(5.6 * GIB), "x") == [("a", "b"), ("b", "c")]
    assert memory_groups(needs, ["b"], int(6.7 * GIB), "x") == [("a", "b", "c")]


@given(
    st.dictionaries(st.text("abcdef", min_size=1, max_size=2), NEEDS, min_size=1),
    st.integers(1, 100 * GIB),
    st.data(),
)
def test_groups_fit_and_no_one_is_left_out(needs, room, data):
    shared = data.draw(st.sets(st.sampled_from(sorted(needs)), max_size=2))
    try:
        groups = memory_groups(needs, shared, room, "x")
    except StepError:
        assert not all_fit(needs, room)
        return
    members = [name for group in groups for name in group if name not in shared]
    assert sorted(members) == sorted(set(needs) - shared)
    for group in groups:
        assert shared <= set(group)
        assert list(group) == [name for name in needs if name in group]
        if len(group) > len(shared) + 1:
            assert all_fit({name: needs[name] for name in group}, room)


def test_what_does_not_fit_next_to_what_it_is_compared_with_is_an_error_with_its_fix():
    needs = {"pytorch": need(3), "fp32": need(3, 6), "int8": need(1)}
    with pytest.raises(StepError) as error:
        memory_groups(needs, ["pytorch"], 8 * GIB, "demo:benchmark")
    assert error.value.what == (
        "'fp32' together with 'pytorch' takes 9.00 GiB of memory, and 8.00 GiB are left for what is "
        "measured at once"
    )
    assert error.value.where == "demo:benchmark"
    assert "`--memory`" in error.value.fix
    assert "`benchmark: {baseline: false}`" in error.value.fix
