import json

import pytest

from onnxbuild.core.step import MODEL_FILE
from onnxbuild.steps.choose import KIND, ChooseParams, Goal, Trial
from tests.fakes.step_context import run_step

TRIALS = {  # name: (cosine_mean, cosine_min, latency in ms, bytes)
    "small": (0.990, 0.95, 1.0, 10),
    "middle": (0.996, 0.98, 1.2, 20),
    "near": (0.997, 0.985, 1.22, 21),
    "large": (0.999, 0.995, 2.0, 40),
    "silly": (0.980, 0.90, 3.0, 50),
}


def chosen(folder, goal, *, names=tuple(TRIALS), choice="", drops=None):
    inputs = {}
    for name in names:
        mean, least, _, size = TRIALS[name]
        for kind, content in (
            ("fidelity", {"cosine_mean": mean, "cosine_min": least, "sqnr_db": 20.0}),
            ("evaluation", {"score": 0.9, "drop": (drops or {}).get(name, 0.0)}),
        ):
            place = folder / kind / name
            place.mkdir(parents=True)
            (place / "report.json").write_text(json.dumps(content))
            inputs[f"{kind}/{name}"] = place
        model = folder / "model" / name
        model.mkdir(parents=True)
        (model / MODEL_FILE).write_bytes(name[0].encode() * size)
        inputs[f"model/{name}"] = model
    if not choice:
        points = [
            {"point": p, "results": {n: {"p50_ms": TRIALS[n][2] * f} for n in names}}
            for p, f in (("one", 1.0), ("many", 4.0))
        ]
        (folder / "benchmark").mkdir()
        (folder / "benchmark/report.json").write_text(json.dumps({"points": points}))
        inputs["benchmark"] = folder / "benchmark"
    trials = tuple(Trial(name, f"{{mode: {name}}}") for name in names)
    params = ChooseParams("v", goal, trials, choice)
    outcome, context = run_step(KIND, params, folder / "step", inputs)
    report = json.loads((context.output("search") / "report.json").read_text())
    return outcome, report, (context.output("model") / MODEL_FILE).read_bytes()


def test_the_fastest_that_meets_the_goal_is_taken_and_written_out(tmp_path):
    outcome, report, model = chosen(tmp_path, Goal(cosine_mean=0.989))
    assert (report["chosen"], model[:1]) == ("small", b"s")
    assert outcome.findings == ()
    assert "'small' is the fastest of 5 trials that meets the goal" in outcome.notes[0]
    assert "written out: {mode: small}" in outcome.notes[0]
    assert outcome.metrics == {"chosen": "small", "tried": 5, "met": 4}


def test_of_two_that_are_as_fast_the_more_faithful_is_taken(tmp_path):
    _, report, _ = chosen(tmp_path, Goal(cosine_mean=0.995))
    assert report["chosen"] == "near"


def test_all_that_is_asked_must_hold(tmp_path):
    _, report, _ = chosen(tmp_path, Goal(cosine_mean=0.995, cosine_min=0.99))
    assert report["chosen"] == "large"
    (tmp_path / "b").mkdir()
    _, report, _ = chosen(
        tmp_path / "b", Goal(cosine_mean=0.98, max_drop=0.01), drops={"small": 0.02}
    )
    assert report["chosen"] == "near"


def test_a_goal_that_none_meets_is_a_finding_that_says_how_near_it_came(tmp_path):
    outcome, report, model = chosen(tmp_path, Goal(cosine_min=0.999))
    (finding,) = outcome.findings
    assert finding.what == (
        "none of 5 trials meets the goal (cosine_min 0.999); the nearest, 'large', reaches "
        "cosine_min 0.995"
    )
    assert report["chosen"] is None
    assert model[:1] == b"l"


def test_the_search_is_told_with_its_front(tmp_path):
    _, report, _ = chosen(tmp_path, Goal(cosine_mean=0.99))
    rows = {row["name"]: row for row in report["trials"]}
    assert [name for name, row in rows.items() if not row["on_front"]] == ["silly"]
    assert rows["small"]["latency"] == pytest.approx(2.0)  # geometric mean of 1 and 4 ms
    assert rows["silly"]["missed"]["cosine_mean"] == pytest.approx(1.0)
    assert rows["large"]["missed"] == {}


def test_a_locked_choice_needs_no_measurement_and_is_still_held_to_the_goal(tmp_path):
    outcome, report, _ = chosen(tmp_path, Goal(cosine_mean=0.99), names=("large",), choice="large")
    assert (report["chosen"], outcome.findings, outcome.notes) == ("large", (), ())
    (tmp_path / "b").mkdir()
    outcome, _, _ = chosen(
        tmp_path / "b", Goal(cosine_mean=0.9999), names=("large",), choice="large"
    )
    assert len(outcome.findings) == 1
