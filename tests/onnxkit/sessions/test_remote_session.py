"""Sessions under another interpreter: a real one, whose packages are this one's."""

import gc
import os
import signal
import subprocess

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxbuild.core.environment import Environment
from onnxbuild.core.errors import StepError
from onnxbuild.core.target import Link, Target
from onnxbuild.onnxkit.benchmark.candidate import Contender, cost_alone
from onnxbuild.onnxkit.benchmark.runners import bind_io, bound_there, copy_times_ms, onnx_runtime
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.providers.placement import placement_of
from onnxbuild.onnxkit.sessions import rpc_client
from onnxbuild.onnxkit.sessions.open import asked_for, open_here, open_session
from onnxbuild.onnxkit.sessions.rpc_client import (
    HostedSession,
    SessionHost,
    host_of,
    runtime_facts,
)
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.onnxkit.timing.concurrency import measure_throughput
from onnxbuild.onnxkit.timing.rounds import burst, measure_turns, runs_in
from onnxbuild.own_folder import REAL_OWN_FOLDER
from tests.environments import INSTALLED, make_venv
from tests.onnxkit.models import linear, model, value

FEEDS = {"x": np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)}


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory):
    return str(make_venv(tmp_path_factory.mktemp("other") / "venv", INSTALLED))


@pytest.fixture
def elsewhere(interpreter):
    environment = Environment(python="venv/bin/python", interpreter=interpreter)
    return Target("other", (Link("cpu"),), environment=environment)


@pytest.fixture
def hosted(tmp_path, elsewhere):
    save_model(linear(), tmp_path / "model")
    return open_session(tmp_path / "model", target=elsewhere)


def test_a_session_there_gives_what_one_here_gives(tmp_path, hosted):
    here = open_session(tmp_path / "model")
    assert isinstance(hosted, HostedSession)
    assert [each.name for each in hosted.get_inputs()] == ["x"]
    assert [(each.name, each.type, each.shape) for each in hosted.get_outputs()] == [
        (each.name, each.type, each.shape) for each in here.get_outputs()
    ]
    assert hosted.get_providers() == ["CPUExecutionProvider"]
    expected, actual = run_session(here, FEEDS), run_session(hosted, FEEDS)
    np.testing.assert_array_equal(actual["y"], expected["y"])
    assert actual["y"].flags.writeable
    assert placement_of(hosted) == placement_of(here)


@pytest.mark.parametrize(
    ("type_", "array"),
    [
        (TensorProto.FLOAT16, np.array([[1.5, -2]], np.float16)),
        (TensorProto.INT64, np.zeros((0, 2), np.int64)),
        (TensorProto.BOOL, np.array([[True, False]])),
        (TensorProto.STRING, np.array([["one", "zwölf"]], object)),
    ],
)
def test_arrays_of_every_type_cross_over(tmp_path, elsewhere, type_, array):
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    shape = ["rows", 2]
    made = model(nodes, [value("x", shape, type_)], [value("y", shape, type_)])
    save_model(made, tmp_path)
    found = run_session(open_session(tmp_path, target=elsewhere), {"x": array})["y"]
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found, array)


def test_bfloat16_crosses_over_as_float32(tmp_path, elsewhere):
    cast = helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)
    inputs, outputs = [value("x", ["n"], TensorProto.BFLOAT16)], [value("y", ["n"])]
    save_model(model([cast], inputs, outputs), tmp_path)
    session = open_session(tmp_path, target=elsewhere)
    x = np.array([1.0, -2.5, 3.14159], np.float32)
    (found,) = run_session(session, {"x": x}).values()
    assert found.tolist() == [1.0, -2.5, 3.140625]
    assert run_session(open_session(tmp_path), {"x": x})["y"].tolist() == found.tolist()
    bind_io(session, {"x": x})()
    load = onnx_runtime(
        tmp_path, target=elsewhere, library=None, settings=SessionSettings(), where="x"
    )
    load()({"x": x})()


def test_weights_that_a_link_leads_to_are_found_there(tmp_path, elsewhere):
    save_model(linear(64, 64), tmp_path / "store", external="always")
    (tmp_path / "in").mkdir()
    for name in ("model.onnx", "model.onnx.data"):
        (tmp_path / "in" / name).symlink_to(tmp_path / "store" / name)
    feeds = {"x": np.ones((1, 64), np.float32)}
    expected = run_session(open_session(tmp_path / "store"), feeds)["y"]
    found = run_session(open_session(tmp_path / "in", target=elsewhere), feeds)["y"]
    np.testing.assert_array_equal(found, expected)


def test_what_onnx_runtime_refuses_there_is_reported_as_here(tmp_path, hosted):
    here = open_session(tmp_path / "model")
    wrong = {"x": np.ones((2, 5), np.float32)}
    said = []
    for session in (here, hosted):
        with pytest.raises(StepError) as caught:
            run_session(session, wrong, "tiny:step")
        said.append((caught.value.what, caught.value.where, caught.value.fix))
    assert said[0] == said[1]
    np.testing.assert_array_equal(run_session(hosted, FEEDS)["y"], run_session(here, FEEDS)["y"])


class CountingHost(SessionHost):
    """Counts how often something goes there and back."""

    asked = 0

    def call(self, function, *arguments):
        self.asked += 1
        return super().call(function, *arguments)


def test_a_burst_goes_there_and_back_once_however_many_runs_it_is(
    tmp_path, interpreter, elsewhere
):
    save_model(linear(), tmp_path)
    asked = asked_for(tmp_path, target=elsewhere, library=None, settings=SessionSettings())
    host = CountingHost(interpreter, "")
    session = HostedSession(host.keep(open_here, asked))
    run_once = bound_there(session, bind_io, FEEDS, 0)
    host.asked = 0
    taken = burst(run_once, discard=True)
    assert len(taken) == 20
    assert all(each > 0 for each in taken)
    assert host.asked == 1
    host.end()


def test_times_are_taken_there(tmp_path, hosted, elsewhere):
    bind = onnx_runtime(
        tmp_path / "model", target=elsewhere, library=None, settings=SessionSettings(), where=""
    )()
    run_once = bind(FEEDS)
    assert runs_in(run_once, 0.5) > 1
    turns = measure_turns(
        {"there": run_once, "here": lambda: None}, warmup=1, min_samples=3, max_time_s=0.01
    )
    assert set(turns) == {"there", "here"}
    (row,) = measure_throughput({"there": [run_once]}, [2], window_s=0.02, windows=1)["there"]
    assert row.runs_per_s > 0


def test_what_a_model_costs_is_what_it_costs_there(tmp_path, elsewhere):
    save_model(linear(1024, 1024), tmp_path)
    load = onnx_runtime(
        tmp_path, target=elsewhere, library=None, settings=SessionSettings(), where=""
    )
    cost = cost_alone(Contender("one", load), {"p": {"x": np.ones((1, 1024), np.float32)}}, "")
    assert 0 < cost.load_s < 30
    assert cost.first_inference_ms > 0
    assert cost.steady_rss_growth_bytes > 3 << 20  # the weights, 4 MiB


def test_inputs_can_be_bound_there(hosted):
    bind_io(hosted, FEEDS)()
    inward, outward = copy_times_ms(hosted, FEEDS)
    assert inward > 0
    assert outward > 0


def test_sessions_that_are_not_needed_any_more_are_let_go(
    tmp_path, hosted, interpreter, elsewhere
):
    host = host_of(interpreter, "")
    gc.collect()  # what earlier tests left is let go now, not between the next lines
    before = len(host._dropped)
    opened = open_session(tmp_path / "model", target=elsewhere)
    number = opened._held.number
    del opened
    assert host._dropped[before:] == [number]
    run_session(hosted, FEEDS)
    assert host._dropped == []


def test_a_process_that_dies_is_reported_and_the_next_step_starts_another(tmp_path, elsewhere):
    host = SessionHost(elsewhere.environment.interpreter, "tiny:step")
    os.kill(host._process.pid, signal.SIGSEGV)
    with pytest.raises(StepError) as caught:
        host.call(runtime_facts)
    assert caught.value.what.endswith("which runs ONNX Runtime, was killed by SIGSEGV")
    assert caught.value.where == "tiny:step"
    with pytest.raises(StepError):
        host.call(runtime_facts)


def test_a_runtime_that_can_not_be_imported_is_reported(tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "numpy.py").write_text("raise ImportError('numpy 0.1 is too old')\n")
    python = make_venv(tmp_path / "venv", tmp_path / "first", INSTALLED)
    with pytest.raises(StepError) as caught:
        SessionHost(str(python), "tiny:step")
    assert "can't import its ONNX Runtime: " in caught.value.what
    assert "pip check" in caught.value.fix


def test_nothing_but_this_program_is_taken_from_where_it_lies(tmp_path):
    """The folder that holds the package may hold another ONNX Runtime."""
    python = make_venv(tmp_path / "venv")
    code = f"{rpc_client._START.rpartition('serve(')[0]}import click"
    done = subprocess.run(
        [python, "-I", "-c", code, REAL_OWN_FOLDER, "0"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'click'" in done.stderr
