import json
import math

import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.accuracy.sample_outputs import SampleErrors, write_errors
from onnxbuild.onnxkit.search.goals import Goal
from onnxbuild.onnxkit.timing.rounds import write_samples
from onnxbuild.steps.choose import KIND, PLOT_FILE, ChooseParams, MeasuredTrial
from tests.fakes.step_context import run_step

TRIALS = {  # name: (cosine_mean, cosine_min, latency in ms, bytes)
    "small": (0.990, 0.95, 1.0, 10),
    "middle": (0.996, 0.98, 1.2, 20),
    "near": (0.997, 0.985, 1.22, 21),
    "large": (0.999, 0.995, 2.0, 40),
    "silly": (0.980, 0.90, 3.0, 50),
}
ALL = {**TRIALS, "nearest": TRIALS["near"]}  # the same bytes as "near"


def errors(mean, least, samples=40):
    """Cosines with that mean and least; the least is in both halves."""
    rest = (mean * samples - 2 * least) / (samples - 2)
    return SampleErrors(
        (least, least, *[rest] * (samples - 2)), (100.0,) * samples, (1.0,) * samples
    )


def chosen(folder, goal, *, names=tuple(TRIALS), choice="", drops=None, **more):
    inputs = {}
    for name in names:
        mean, least, _, size = ALL[name]
        place = folder / "fidelity" / name
        place.mkdir(parents=True)
        write_errors(place, more.get("errors", {}).get(name) or errors(mean, least))
        lost = [{"part": part} for part in more.get("lost", {}).get(name, ())]
        shown = {"cosine_mean": mean, **({"lost_parts": lost} if lost else {})}
        (place / "report.json").write_text(json.dumps(shown))
        inputs[f"fidelity/{name}"] = place
        place = folder / "evaluation" / name
        place.mkdir(parents=True)
        scored = {"score": 0.9, "drop": (drops or {}).get(name, 0.0)}
        if "halves" in more:
            scored["half_drops"] = more["halves"][name]
        (place / "report.json").write_text(json.dumps(scored))
        inputs[f"evaluation/{name}"] = place
        model = folder / "model" / name
        model.mkdir(parents=True)
        (model / MODEL_FILE).write_bytes(name[0].encode() * size)
        inputs[f"model/{name}"] = model
        if "perplexity" in more:
            place = folder / "generation" / name
            place.mkdir(parents=True)
            row = {"kl": 1 - mean, "loss": math.log(more["perplexity"][name]), "compared": 8}
            (place / "report.json").write_text(json.dumps({"by_prompt": [row]}))
            inputs[f"generation/{name}"] = place
    for name in more.get("without", ()):
        del inputs[name]
    if not choice and goal.size is None:
        (folder / "benchmark").mkdir()
        inputs["benchmark"] = folder / "benchmark"
        points = {"one": 1.0, "many": 4.0}
        report = {"points": [{"point": point} for point in points]}
        (folder / "benchmark/report.json").write_text(json.dumps(report))
        rounds = more.get("rounds", 12)
        noise = more.get("noise", [1.0] * rounds)
        turns = {
            point: {
                n: [
                    [round(ALL[n][2] * f * 1e6 * shift)] * 5
                    for shift in (noise if n == "middle" else [1.0] * rounds)
                ]
                for n in names
            }
            | {"fp32": [[round(more.get("fp32_ms", 5.0) * f * 1e6)] * 5] * rounds}
            for point, f in points.items()
        }
        write_samples(folder / "benchmark", {point: [each] for point, each in turns.items()})
    trials = tuple(MeasuredTrial(name, f"{{mode: {name}}}") for name in names)
    params = ChooseParams("v", goal, more.get("margin", 0.0), trials, choice)
    outcome, context = run_step(KIND, params, folder / "step", inputs)
    report = json.loads((context.output("search") / "report.json").read_text())
    assert (context.output("search") / PLOT_FILE).exists() != bool(choice)
    return outcome, report, (context.output("model") / MODEL_FILE).read_bytes()


def test_the_fastest_that_meets_the_goal_is_taken_and_written_out(tmp_path):
    outcome, report, model = chosen(tmp_path, Goal(cosine_mean=0.989))
    assert (report["chosen"], model[:1]) == ("small", b"s")
    assert outcome.findings == ()
    assert "'small' is the fastest of 5 trials that meets the goal" in outcome.notes[0]
    assert "written out: {mode: small}" in outcome.notes[0]
    assert outcome.metrics == {"chosen": "small", "tried": 5, "met": 4}


PERPLEXITY = {"small": 1.05, "middle": 1.01, "near": 1.012, "large": 1.0, "silly": 1.2}


def test_the_smallest_that_meets_the_goal_is_taken_without_a_stopwatch_and_the_front_is_printed(
    tmp_path,
):
    goal = Goal(perplexity_ratio=1.02, size="smallest")
    outcome, report, model = chosen(tmp_path, goal, perplexity=PERPLEXITY)
    assert (report["chosen"], model[:1]) == ("middle", b"m")
    assert report["goal"] == {"perplexity_ratio": 1.02}
    choice, front, few = outcome.notes
    assert (
        "'middle' is the smallest of 5 trials that meets the goal (20 B, perplexity_ratio 1.01 "
        in choice
    )
    assert "the front: 'small' 10 B, perplexity_ratio 1.05; 'middle' 20 B, " in front
    assert "'silly'" not in front
    assert few.startswith("variant 'v': 1 prompts both choose and judge")


def test_a_goal_on_perplexity_that_no_trial_meets_is_a_finding_with_the_nearest(tmp_path):
    goal = Goal(perplexity_ratio=1.001, size="smallest")
    names = ("small", "middle")
    outcome, report, _ = chosen(tmp_path, goal, names=names, perplexity=PERPLEXITY)
    assert report["chosen"] is None
    assert "the nearest, 'middle', reaches perplexity_ratio 1.01" in outcome.findings[0].what


def test_a_trial_that_generated_nothing_is_left_out_of_a_search_for_perplexity(tmp_path):
    goal = Goal(perplexity_ratio=1.02, size="smallest")
    without = ("generation/middle",)
    outcome, report, _ = chosen(tmp_path, goal, perplexity=PERPLEXITY, without=without)
    assert report["chosen"] == "near"
    assert report["unfit"] == ["middle"]
    assert "middle" in outcome.notes[0]


def test_a_trial_that_loses_a_part_of_an_output_is_not_taken_whatever_its_cosine(tmp_path):
    lost = {"small": ["y[:, 4:22]"]}
    outcome, report, _ = chosen(tmp_path, Goal(cosine_mean=0.98), lost=lost)
    assert report["chosen"] == "near"
    assert outcome.findings == ()
    assert "not taken, because y[:, 4:22] is lost in it: 'small'" in outcome.notes[0]


def test_where_all_trials_lose_a_part_the_finding_says_so(tmp_path):
    lost = {name: ["y[:, 4:22]"] for name in TRIALS}
    outcome, report, _ = chosen(tmp_path, Goal(cosine_mean=0.98), lost=lost)
    assert report["chosen"] is None
    (finding,) = outcome.findings
    assert finding.what.endswith("reaches cosine_mean 0.99, and loses y[:, 4:22]")


def test_of_two_that_are_as_fast_the_more_faithful_is_taken(tmp_path):
    _, report, _ = chosen(tmp_path, Goal(cosine_mean=0.995))
    assert report["chosen"] == "near"


def test_of_equal_models_the_first_of_the_ladder_is_taken_and_the_others_say_so(tmp_path):
    for number, names in enumerate([("near", "large", "nearest"), ("nearest", "near")]):
        outcome, report, _ = chosen(tmp_path / str(number), Goal(cosine_mean=0.995), names=names)
        reported = {row["name"]: row.get("same_as") for row in report["trials"]}
        assert reported == {**dict.fromkeys(names), names[-1]: names[0]}
        assert report["chosen"] == names[0]
        assert len(outcome.notes) == 1


def test_a_goal_that_none_meets_is_a_finding_that_says_how_near_it_came(tmp_path):
    outcome, report, model = chosen(tmp_path, Goal(cosine_min=0.999))
    (finding,) = outcome.findings
    assert finding.what == (
        "none of 5 trials meets the goal (cosine_min 0.999); the nearest, 'large', reaches "
        "cosine_min 0.995"
    )
    assert report["chosen"] is None
    assert model[:1] == b"l"


def test_the_search_is_reported_with_its_front(tmp_path):
    _, report, _ = chosen(tmp_path, Goal(cosine_mean=0.99))
    rows = {row["name"]: row for row in report["trials"]}
    assert [name for name, row in rows.items() if not row["on_front"]] == ["silly"]
    assert rows["small"]["ratio"]["value"] == 1.0
    assert rows["large"]["ratio"]["value"] == pytest.approx(2.0)
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


def lucky(first, second, samples=40):
    """Cosines of one kind in the half that chooses, of another in the half that judges."""
    return SampleErrors((first, second) * (samples // 2), (1.0,) * samples, (0.1,) * samples)


def single(noise, samples=40):
    """Errors of a model that gives one number a sample."""
    return SampleErrors((1.0,) * samples, (100.0,) * samples, (noise,) * samples, (1,) * samples)


def test_a_cosine_of_single_numbers_is_no_goal(tmp_path):
    figures = {"small": single(10.0), "middle": single(0.1), "large": single(0.001)}
    names = tuple(figures)
    with pytest.raises(StepError, match="the goal names cosine_min, and the model gives one") as c:
        chosen(tmp_path / "a", Goal(cosine_min=0.9), names=names, errors=figures)
    assert "goal: {sqnr_db: 30}" in c.value.fix
    outcome, report, _ = chosen(tmp_path / "b", Goal(sqnr_db=20.0), names=names, errors=figures)
    assert outcome.metrics["chosen"] == "middle"
    assert [each["on_front"] for each in report["trials"]] == [True, True, True]


def test_one_half_of_the_data_chooses_and_the_other_judges(tmp_path):
    outcome, report, _ = chosen(
        tmp_path, Goal(cosine_mean=0.995), errors={"small": lucky(0.999, 0.99)}
    )
    (finding,) = outcome.findings
    assert finding.what == (
        "'small' meets the goal (cosine_mean 0.995) on the samples that it was chosen by "
        "(cosine_mean 0.999), but not on the 20 others: cosine_mean 0.99"
    )
    assert finding.fix == "raise `margin` above 0, or yield more `fidelity` data"
    assert report["chosen"] is None
    row = report["trials"][0]
    assert (row["choosing"]["samples"], row["judging"]["samples"]) == (20, 20)


def test_a_margin_is_left_where_it_is_chosen_and_not_where_it_is_judged(tmp_path):
    found = {"small": lucky(0.9951, 0.9951), "near": lucky(0.9956, 0.99501)}
    outcome, report, _ = chosen(tmp_path, Goal(cosine_mean=0.995), margin=0.1, errors=found)
    assert (report["chosen"], outcome.findings) == ("middle", ())  # as fast, and more faithful
    assert report["trials"][0]["missed"]["cosine_mean"] == pytest.approx(0.08)
    assert report["trials"][0]["missed_judging"] == {}


def test_one_half_of_the_scored_data_chooses_and_the_other_judges(tmp_path):
    halves = {name: [0.0, 0.0] for name in TRIALS} | {"small": [0.0, 0.03]}
    goal = Goal(max_drop=0.02)
    outcome, report, _ = chosen(tmp_path / "lucky", goal, halves=halves)
    (finding,) = outcome.findings
    assert finding.what == (
        "'small' meets the goal (max_drop 0.02) on the samples that it was chosen by (drop 0), but "
        "not on the others: drop 0.03"
    )
    assert finding.fix == "raise `margin` above 0, or yield more `evaluate` data"
    assert report["chosen"] is None
    halves["small"] = [0.019, 0.0]
    outcome, report, _ = chosen(tmp_path / "near", goal, halves=halves)
    assert report["chosen"] == "small"
    assert not any("both chooses and judges" in note for note in outcome.notes)
    outcome, report, _ = chosen(tmp_path / "margin", goal, halves=halves, margin=0.1)
    assert report["chosen"] == "near"


def test_a_trial_that_is_not_applicable_is_left_out_with_a_note(tmp_path):
    kind = "model"
    outcome, report, _ = chosen(
        tmp_path, Goal(cosine_mean=0.989), without=(f"{kind}/small", "model/silly")
    )
    assert report["chosen"] == "near"
    assert report["unfit"] == ["small", "silly"]
    assert {row["name"] for row in report["trials"]} == {"middle", "near", "large"}
    assert outcome.notes[0] == (
        "variant 'v': trials small, silly are left out: not applicable to this model"
    )


def test_a_model_to_which_no_trial_is_applicable_is_an_error(tmp_path):
    with pytest.raises(StepError, match="no trial is applicable to the model: small, large"):
        chosen(
            tmp_path,
            Goal(cosine_mean=0.9),
            names=("small", "large"),
            without=("model/small", "model/large"),
        )
