"""`mode: auto` and the fidelity section, through the command."""

import json
import shutil

import pytest
import yaml

pytestmark = pytest.mark.slow

DATA = """
import numpy as np


def feeds():
    generator = np.random.default_rng(7)
    for _ in range(12):
        yield {"input": generator.standard_normal((4, 4)).astype(np.float32)}


def project(outputs, feeds):
    return outputs["logits"]
"""
SEARCH = """quantization:
  small: {mode: auto, trials: 3, goal: {GOAL}, validate: {cosine_min: 0.5}}
fidelity: {data: models/data.py:feeds, project: models/data.py:project}
"""


@pytest.fixture
def searching(project):
    project.write("models/data.py", DATA)
    project.edit(
        "tiny.yaml", "quantization: {fp32: none}\n", SEARCH.replace("GOAL", "cosine_mean: 0.9")
    )
    return project


def test_a_search_finds_a_variant_that_meets_its_goal_and_its_choice_is_locked(
    searching, tmp_path
):
    first = searching.run()
    assert first.code == 0, first.out + first.err
    assert "is the fastest of 3 trials that meets the goal" in first.out
    assert "cosine  worst sample\n" in first.out
    assert {"small/choose", "small/trials", "sensitivity", "baseline"} <= set(first.ran)
    assert sum(step.endswith("/quantize") for step in first.ran) == 3
    bundle = searching.folder / "artifacts/out/tiny/small"
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["fidelity"]["cpu"]["cosine_mean"] >= 0.9
    search = json.loads((bundle / "search.json").read_text())
    assert len(search["trials"]) == 3
    assert "<svg" in (bundle / "search-front.svg").read_text()
    assert (bundle / "benchmark-samples.npz").exists()
    again = searching.run()
    assert again.ran == []

    assert searching("lock", "tiny.yaml").code == 0
    lock = yaml.safe_load((searching.folder / "tiny.lock").read_text())
    (choice,) = lock["choices"].values()
    assert choice.startswith("int8-")
    assert not any(step.endswith("small/trials") for step in lock["steps"])
    there = tmp_path / "elsewhere"
    shutil.copytree(searching.folder, there, ignore=shutil.ignore_patterns("artifacts"))
    searching.folder = there
    built = searching.run("--locked")
    assert built.code == 0, built.out + built.err
    assert "small/trials" not in built.ran
    assert searching("lock", "--check", "tiny.yaml").code == 0


def test_more_trials_redo_none_of_those_that_were_tried(searching):
    first = searching.run("--json")
    assert first.code == 0
    events = [json.loads(line) for line in first.out.splitlines()]
    bars = [each for each in events if each.get("unit") == "trials"]
    assert {(each["step"], each["total"]) for each in bars} == {("tiny:small/choose", 3)}
    ended = {each["step"]: each["metrics"] for each in events if each["type"] == "step_finished"}
    assert ended["tiny:small/int8-dynamic/fidelity"]["cosine_mean"] > 0.9
    searching.edit("tiny.yaml", "trials: 3", "trials: 4")
    more = searching.run()
    assert more.code == 0
    assert sum(step.endswith("/quantize") for step in more.ran) == 1
    assert "sensitivity" not in more.ran


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ("goal: {cosine_mean: 0.9}, ", "", "goal"),
        (
            "trials: 3",
            "include: [static]",
            "variant 'small' tries 'static', and no calibration.data is named",
        ),
    ],
)
def test_what_a_search_lacks_is_named(searching, old, new, named):
    searching.edit("tiny.yaml", old, new)
    done = searching.run()
    assert done.code in (1, 2)
    assert named in done.out + done.err
