import json
import os
import threading
import time
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis
from onnxbuild.onnxkit.benchmark import candidate
from onnxbuild.onnxkit.benchmark.candidate import (
    Contender,
    LoadCost,
    Need,
    all_fit,
    memory_groups,
    peak_growth_bytes,
)
from onnxbuild.onnxkit.benchmark.interleave import load_report, measure_loads
from onnxbuild.onnxkit.benchmark.node_times import node_times
from onnxbuild.onnxkit.benchmark.options import measured_points, takes
from onnxbuild.onnxkit.benchmark.runners import bind_io, copy_times_ms
from onnxbuild.onnxkit.sessions.open import open_session
from tests.onnxkit.models import model, value, weight
from tests.steps.graphs import digits

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


AXES = (Axis("batch", 1, 64, 2), Axis("sequence", 1, 512, 16))


def names(wanted, fixed):
    return [point.name for point in measured_points(AXES, wanted, fixed, "demo:benchmark")]


def test_where_no_points_are_named_each_model_is_measured_at_a_size_that_it_takes():
    assert names((), {"any": {}}) == ["batch=2,sequence=16"]
    assert names((), {"any": {}, "one": {"batch": 1}}) == [
        "batch=2,sequence=16",
        "batch=1,sequence=16",
    ]
    assert names((), {"one": {"batch": 1}}) == ["batch=1,sequence=16"]


def test_a_model_that_takes_none_of_the_points_is_named():
    with pytest.raises(StepError) as caught:
        names(({"batch": (2, 4)},), {"any": {}, "one": {"batch": 1}})
    assert "variant 'one' takes batch=1 alone (`session.free_dimensions`)" in caught.value.what
    assert caught.value.fix == "add `{batch: 1}` to `benchmark.points`"


def test_a_model_runs_where_its_sizes_are_those_of_the_point():
    (point,) = measured_points(AXES, (), {"any": {}}, "")
    assert takes({}, point)
    assert takes({"batch": 2}, point)
    assert not takes({"batch": 2, "sequence": 8}, point)


def test_a_bound_run_gives_what_a_plain_one_does(tmp_path):
    session = open_session(digits(tmp_path))
    feeds = {"image": np.random.default_rng(0).random((3, 1, 8, 8), np.float32)}
    call = bind_io(session, feeds)
    (plain,) = session.run(None, feeds)
    for _ in range(2):
        np.testing.assert_array_equal(call().copy_outputs_to_cpu()[0], plain)


def test_copies_take_time_but_not_much(tmp_path):
    session = open_session(digits(tmp_path))
    feeds = {"image": np.ones((3, 1, 8, 8), np.float32)}
    inward, outward = copy_times_ms(session, feeds)
    assert 0 < inward < 100
    assert 0 < outward < 100


def looping():
    """x @ w, ten times more in a loop."""
    body = helper.make_graph(
        [
            helper.make_node("MatMul", ["s", "w"], ["o"], name="inner"),
            helper.make_node("Identity", ["c"], ["go"], name="go"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", onnx.TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("o", onnx.TensorProto.FLOAT, None),
        ],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="outer"),
        helper.make_node("Loop", ["times", "on", "a"], ["y"], name="loop", body=body),
    ]
    weights = [
        weight("w", np.eye(256, dtype=np.float32)),
        weight("times", np.int64(10)),
        weight("on", np.bool_(True)),
    ]
    return model(nodes, [value("x", ["n", 256])], [value("y", ["n", 256])], weights)


def test_what_runs_in_a_loop_is_not_counted_again_in_the_loop(tmp_path):
    options = onnxruntime.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(tmp_path / "profile")
    session = onnxruntime.InferenceSession(looping().SerializeToString(), options)
    for _ in range(5):
        session.run(None, {"x": np.ones((64, 256), np.float32)})
    found = node_times(json.loads(Path(session.end_profiling()).read_text("utf-8")), 3)
    assert {each["node"]: each["nodes"] for each in found["nodes"]} == {
        "outer": 1, "inner": 10, "loop": 1, "go": 10
    }  # fmt: skip
    assert sum(each["ms"] for each in found["operators"]) <= found["run_ms"] + 1e-4
    assert sum(each["share"] for each in found["nodes"]) == pytest.approx(1, abs=1e-3)


def event(name, start, duration, thread=1):
    return {
        "cat": "Node",
        "name": f"{name}_kernel_time",
        "ts": start,
        "dur": duration,
        "tid": thread,
        "args": {"op_name": name},
    }


def test_nodes_in_nodes_and_on_other_threads_keep_their_own_time():
    events = [
        {"name": "model_run", "ts": 0, "dur": 100},
        event("before", 0, 10),
        event("inmost", 12, 8),
        event("inner", 12, 8),
        event("sibling", 20, 5),
        event("outer", 10, 40),
        event("elsewhere", 15, 20, thread=2),
    ]
    found = {each["node"]: each["ms"] for each in node_times(events, 1)["nodes"]}
    assert found == {
        "before": 0.01, "inmost": 0.008, "inner": 0.0, "sibling": 0.005, "outer": 0.027,
        "elsewhere": 0.02,
    }  # fmt: skip


FEEDS = {"x": np.zeros(1, "float32")}


def costs(*seconds):
    return [LoadCost(each, 1.0, 1000, 900) for each in seconds]


def test_medians_are_reported_and_how_many_times_as_fast_each_loads():
    found = {
        "portable": costs(0.4, 0.42, 0.39, 0.41, 0.4, 0.4, 9.0),
        "optimized": costs(0.1, 0.11, 0.1, 0.1, 0.09, 0.1, 0.1),
    }
    report = load_report(found, "portable")
    assert report["portable"] == {
        "load_ms": 400.0, "first_inference_ms": 1.0, "peak_rss_growth_bytes": 1000,
    }  # fmt: skip
    value, low, high = report["optimized"]["speedup"]
    assert low <= value <= high
    assert 3.5 < value < 4.5
    assert low > 1


def test_a_model_next_to_itself_is_not_faster_than_its_own_interval():
    noise = np.random.default_rng(0).lognormal(-1, 0.1, (2, 7))
    report = load_report({"a": costs(*noise[0]), "b": costs(*noise[1])}, "a")
    _, low, high = report["b"]["speedup"]
    assert low < 1 < high


def test_each_load_is_in_a_process_of_its_own(tmp_path):
    def load():
        with (tmp_path / "pids").open("a") as file:
            file.write(f"{os.getpid()}\n")
        return lambda feeds: lambda: feeds

    found = measure_loads([Contender("a", load), Contender("b", load)], FEEDS, "", rounds=2)
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == len(set(pids)) == 4
    assert str(os.getpid()) not in pids
    assert {name: len(each) for name, each in found.items()} == {"a": 2, "b": 2}


def test_one_that_does_not_load_is_an_error_of_the_step():
    def load():
        raise StepError("no such model", where="test:step")

    with pytest.raises(StepError, match="no such model"):
        measure_loads([Contender("a", load)], FEEDS, "test:step")
