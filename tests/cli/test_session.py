"""`session` through the command: found settings are locked, delivered, and build the same elsewhere."""

import json
import shutil
import subprocess
import sys

import pytest
import yaml

from tests.environments import INSTALLED, make_venv

pytestmark = pytest.mark.slow

SESSION = """\
quantization:
  fp32: none
  one: {mode: none, session: {free_dimensions: {batch: 1}, tune: false, profiling: true}}
session: {tune: {max_time_s: 4, search: [threads]}, intra_op_threads: 64, spinning: never}
"""


@pytest.fixture
def tuning(project):
    project.edit("tiny.yaml", "quantization: {fp32: none}\n", SESSION)
    project.edit("tiny.yaml", "benchmark: {", "benchmark: {baseline: false, ")
    project.edit("models/tiny.py", "width=8", "width=30000")  # enough for many threads to wake up
    return project


def manifest_of(project, variant):
    path = project.folder / "artifacts/out/tiny" / variant / "manifest.json"
    return json.loads(path.read_text())


def test_what_is_found_is_locked_and_built_the_same_without_measuring(tuning, tmp_path):
    assert tuning.run("--only", "fp32/package").code == 0
    (report,) = (tuning.folder / "artifacts").glob("out/tiny/fp32/tune.json")
    tune = json.loads(report.read_text())
    done = tuning("lock", "tiny.yaml")
    assert done.code == 0, done.out + done.err
    assert "tiny.yaml:12:53: session has `intra_op_threads: 64`, and here are" in done.out
    lock = yaml.safe_load((tuning.folder / "tiny.lock").read_text())
    ((name, choice),) = lock["choices"].items()
    assert name == "tiny:fp32/session"
    assert json.loads(choice) == tune["tuned"]
    assert json.loads(choice)["intra_op_threads"] < 64
    assert "tiny:fp32/tune" not in lock["steps"]
    out = tuning.folder / "artifacts/out/tiny"
    assert (out / "one/profile.json").exists()
    assert (out / "one/profile-batch=1.json").exists()
    session = manifest_of(tuning, "fp32")["session"]
    assert {n: session[n] for n in json.loads(choice)} == json.loads(choice)
    one = manifest_of(tuning, "one")
    assert one["session"]["intra_op_threads"] == 64
    assert one["dynamic_axes"] == {"batch": {"min": 1, "max": 1, "example": 1, "multiple_of": 1}}
    shown = subprocess.run(
        [sys.executable, "-I", "-B", str(out / "one/load.py")],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    assert "output logits float32 [1, 2]" in shown.stdout
    points = json.loads((out / "one/benchmark.json").read_text())["points"]
    assert [set(each["results"]) for each in points] == [{"fp32"}, {"fp32", "one"}]

    there = tmp_path / "elsewhere"
    shutil.copytree(tuning.folder, there, ignore=shutil.ignore_patterns("artifacts"))
    before = (out / "fp32/manifest.json").read_bytes()
    tuning.folder = there
    built = tuning.run("--locked")
    assert built.code == 0, built.out + built.err
    assert "fp32/tune" not in built.ran
    assert "fp32/session" in built.ran
    assert (there / "artifacts/out/tiny/fp32/manifest.json").read_bytes() == before
    assert tuning("lock", "--check", "tiny.yaml").code == 0


SUFFIXES = {"spare": "", "cpu": "-cpu", "cuda": "-cuda", "other": "-other"}


def test_each_target_is_tuned_and_one_that_is_not_there_keeps_the_settings(tuning):
    targets = (
        "providers:\n  spare: {provider: cpu}\n  cpu: {}\n  cuda: {}\n"
        "  other: {provider: cpu, environment: {python: venv/bin/python}}\n"
    )
    make_venv(tuning.folder / "venv", INSTALLED)
    tuning.edit("tiny.yaml", "session: {tune: {max", targets + "session: {tune: {max")
    done = tuning("lock", "tiny.yaml")
    assert done.code == 0, done.out + done.err
    lock = yaml.safe_load((tuning.folder / "tiny.lock").read_text())
    assert set(lock["choices"]) == {f"tiny:fp32/session{s}" for s in SUFFIXES.values()}
    found = {name: json.loads(choice) for name, choice in lock["choices"].items()}
    reported = manifest_of(tuning, "fp32")["targets"]
    for target, suffix in SUFFIXES.items():
        choice = found[f"tiny:fp32/session{suffix}"]
        assert {name: reported[target]["session"][name] for name in choice} == choice
    if "skipped" in reported["cuda"]:
        assert found["tiny:fp32/session-cuda"]["intra_op_threads"] == 64
    for target in ("cpu", "other"):
        assert found[f"tiny:fp32/session-{target}"]["intra_op_threads"] < 64
    again = tuning.run("--locked")
    assert again.code == 0, again.out + again.err
    assert not [step for step in again.ran if "tune" in step]
