"""The search, a profile and what is settled, on a real model in a real ONNX Runtime."""

import json

import pytest

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.target import CPU_TARGET, Link, Target
from onnxbuild.onnxkit.sessions.settings import TUNED, SessionSettings, TuneOptions, read_settings
from onnxbuild.steps import profile, session, tune
from tests.fakes.step_context import run_step
from tests.steps.graphs import digits

IMAGE = DummyInput("image", "float32", ("batch", 1, 8, 8))
DEFAULT = SessionSettings()
AXES = (Axis("batch", 1, 64, 2),)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return digits(tmp_path_factory.mktemp("model"))


def tuned(folder, model, settings=DEFAULT, points=(), **options):
    params = tune.TuneParams(
        variant="fp32",
        inputs=(IMAGE,),
        axes=AXES,
        points=points,
        target=CPU_TARGET,
        settings=settings,
        options=TuneOptions(**options),
    )
    outcome, context = run_step(tune.KIND, params, folder, {"model": model})
    return outcome, json.loads((context.output("report") / "report.json").read_text()), context


def test_all_that_was_tried_is_reported_with_its_interval(tmp_path, model):
    outcome, report, _ = tuned(
        tmp_path, model, points=({"batch": (1, 2)},), search=("spinning",), max_time_s=1.0
    )
    assert report["points"] == ["batch=1", "batch=2"]
    (asked, *_) = report["asked"]
    assert asked["question"] == "spinning"
    assert [each["settings"] for each in asked["tried"]] == [
        "{spinning: stop}",
        "{spinning: never}",
    ]
    for each in asked["tried"]:
        value, low, high = each["ratio"]
        assert 0 < low <= value <= high
        assert set(each["p50_ms"]) == {"batch=1", "batch=2"}
    assert set(report["tuned"]) == set(TUNED)
    chosen = report["changed"] != "{}"
    assert chosen == bool(report["proof"] and report["proof"]["holds"])
    assert outcome.metrics["tuned"] == report["changed"]
    assert outcome.notes[0].startswith("variant 'fp32': ")


def test_settings_are_left_where_others_are_faster_for_sure(tmp_path, model):
    """Waking 64 threads takes ten times as long as all of the model; a busy machine may hide it."""
    slow = SessionSettings(intra_op_threads=64, spinning="never")
    _, report, context = tuned(
        tmp_path, model, slow, points=({"batch": 64},), search=("threads",), max_time_s=1.0
    )
    proof = report["proof"] or {"holds": False}
    assert (report["tuned"]["intra_op_threads"] < 64) == proof["holds"]
    if proof["holds"]:
        assert proof["ratio"][2] < 1
    params = session.SessionParams(slow, "")
    done, settled = run_step(
        session.KIND, params, tmp_path / "session", {"tune": context.output("report")}
    )
    found = read_settings(settled.output("settings"))
    assert {name: getattr(found, name) for name in TUNED} == report["tuned"]
    assert json.loads(done.metrics["chosen"]) == report["tuned"]


def test_a_choice_gives_the_bytes_that_the_search_gave(tmp_path):
    base = SessionSettings(graph_optimization="basic")
    found = SessionSettings(intra_op_threads=2, spinning="stop")
    report = tmp_path / "report"
    report.mkdir()
    tuned_values = json.loads(found.tuned_text())
    (report / "report.json").write_text(json.dumps({"tuned": tuned_values}))
    outputs = []
    for choice, inputs in (("", {"tune": report}), (found.tuned_text(), {})):
        params = session.SessionParams(base, choice)
        outcome, context = run_step(session.KIND, params, tmp_path / str(bool(choice)), inputs)
        assert outcome.metrics["chosen"] == found.tuned_text()
        outputs.append(
            [(context.output(n) / "session.json").read_bytes() for n in ("settings", "judged")]
        )
    assert outputs[0] == outputs[1]
    assert read_settings(context.output("judged")) == base.judged()


def test_on_a_target_that_is_not_there_the_recipes_settings_stay(tmp_path, model):
    found = tmp_path / "found"
    found.mkdir()
    (found / "report.json").write_text(json.dumps({"absent": "it does not load: no driver"}))
    slow = SessionSettings(intra_op_threads=64)
    params = tune.TuneParams(
        variant="fp32",
        inputs=(IMAGE,),
        axes=AXES,
        points=(),
        target=Target("cuda", (Link("cuda"),)),
        settings=slow,
        options=TuneOptions(),
    )
    outcome, context = run_step(
        tune.KIND, params, tmp_path / "tune", {"model": model, "target": found}
    )
    assert outcome.metrics["skipped"] == "it does not load: no driver"
    settled, after = run_step(
        session.KIND,
        session.SessionParams(slow, ""),
        tmp_path / "session",
        {"tune": context.output("report")},
    )
    assert json.loads(settled.metrics["chosen"]) == json.loads(slow.tuned_text())
    assert read_settings(after.output("settings")) == slow


def test_a_profile_says_which_operators_take_the_time(tmp_path, model):
    params = profile.ProfileParams(
        variant="fp32",
        inputs=(IMAGE,),
        axes=AXES,
        points=(),
        target=CPU_TARGET,
        session=SessionSettings(graph_optimization="basic", intra_op_threads=1),
    )
    outcome, context = run_step(profile.KIND, params, tmp_path, {"model": model})
    report = json.loads((context.output("report") / "report.json").read_text())
    point = report["points"]["batch=2"]
    assert report["session"] == "{graph_optimization: basic, intra_op_threads: 1}"
    assert point["runs"] == 10
    assert point["run_ms"] > 0
    assert sum(each["share"] for each in point["operators"]) == pytest.approx(1, abs=0.01)
    assert point["operators"][0]["operator"] == outcome.metrics["slowest_operator"]
    assert {"CPUExecutionProvider"} == {each["provider"] for each in point["operators"]}
    assert point["nodes"][0]["ms"] >= point["nodes"][-1]["ms"]
    events = json.loads((context.output("report") / "batch=2.json").read_text())
    assert sum(each.get("name") == "model_run" for each in events) == 13
