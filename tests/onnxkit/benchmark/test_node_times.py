"""Times of nodes, from the profile of a session."""

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from onnxbuild.onnxkit.benchmark.node_times import node_times
from tests.onnxkit.models import model, value, weight


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
