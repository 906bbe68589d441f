"""Targets that are not on this machine, through the command: skipped, required, up to date."""

import json

import pytest

import onnxbuild
from onnxbuild.onnxkit.host.devices import devices_of
from onnxbuild.providers.vendors.nvidia import NVIDIA
from tests.ci.reading import read_junit, rendered_tables
from tests.cli.conftest import Project, make_project

SKIPPED = "skipped: cuda: does not load: "


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    if devices_of(NVIDIA).nodes:
        pytest.skip("this machine has a GPU")
    project = make_project(tmp_path_factory.mktemp("targets") / "project")
    project.edit("tiny.yaml", "quantization", "providers: [cpu, cuda]\nquantization")
    project.edit("tiny.yaml", "min_samples: 3}", "min_samples: 3, baseline: false}")
    first = project.run()
    assert first.code == 0, first.out + first.err
    assert f"\n{SKIPPED}" in first.out
    assert "\n        target 'cuda' is skipped: it does not load: " in first.out
    return project


def manifest(project):
    text = (project.folder / "artifacts/out/tiny/fp32/manifest.json").read_text()
    return json.loads(text)


@pytest.mark.slow
def test_a_target_that_is_not_here_is_reported_on_every_run_and_in_the_manifest(built):
    again = built.run()
    assert (again.code, again.ran) == (0, [])
    assert again.out.count(SKIPPED) == 1
    assert again.out.endswith("nothing to do\n")
    reported = manifest(built)
    assert reported["targets"]["cuda"]["skipped"].startswith("does not load: ")
    assert reported["targets"]["cpu"]["placement"]["nodes"].keys() == {"CPUExecutionProvider"}
    assert reported["validation"].keys() == {"cpu"}
    assert [each["name"] for each in reported["providers"]] == [
        "CPUExecutionProvider",
        "CUDAExecutionProvider",
    ]  # fmt: skip
    out = built.folder / "artifacts/out/tiny/fp32"
    assert "skipped" in json.loads((out / "benchmark-cuda.json").read_text())


@pytest.mark.slow
def test_a_gate_that_never_ran_counts_as_skipped_for_ci(built, tmp_path):
    summary = tmp_path / "summary.md"
    options = ("--json", "--github", "--junit", "run.xml")
    done = built.run(*options, env={"GITHUB_STEP_SUMMARY": str(summary)})
    assert done.code == 0, done.err
    cases = read_junit(built.folder / "run.xml")["tiny"]
    for name in ("tiny.fp32 validate-cuda", "tiny benchmark-cuda"):
        assert cases[name].find("skipped").get("message").startswith("does not load: ")
    assert cases["tiny.fp32 validate"].find("skipped") is None
    (variant,) = json.loads(done.out.splitlines()[-1])["variants"]
    verdicts = {each["step"]: each for each in variant["verdicts"]}
    skipped, ran = verdicts["tiny:fp32/validate-cuda"], verdicts["tiny:fp32/validate"]
    assert (skipped["state"], skipped["passed"]) == ("skipped", False)
    assert skipped["reason"].startswith("does not load: ")
    assert (ran["state"], ran["passed"], ran["reason"]) == ("passed", True, "")
    assert variant["passed"] is True
    (table,) = rendered_tables(summary.read_text())
    assert "passed; " in table[1][-1]
    assert "skipped tiny:fp32/validate-cuda (does not load: " in table[1][-1]
    made = onnxbuild.run(built.folder / "tiny.yaml")["fp32"]
    assert made.passed
    assert repr(made) == "<Variant tiny:fp32, passed; skipped: fp32/validate-cuda>"
    assert "passed; skipped: fp32/validate-cuda" in made._repr_html_()


@pytest.mark.slow
def test_what_decides_whether_it_loads_is_looked_at_again_when_it_changes(built):
    planned = built("plan", "tiny.yaml", env={"LD_LIBRARY_PATH": "/nowhere/lib"})
    assert planned.code == 0
    assert "tiny:provider-cuda" in planned.out
    assert "LD_LIBRARY_PATH" in planned.out
    assert "cached  tiny:provider-cuda" in built("plan", "tiny.yaml").out


@pytest.mark.slow
def test_what_is_required_and_not_here_fails_with_a_fix(built):
    required = built.run("--set", "providers={cpu: {}, cuda: {require: true}}")
    assert required.code == 1
    assert (
        "FAILED  tiny:provider-cuda: target 'cuda' is required, and does not load" in required.out
    )
    assert "        fix: " in required.out


@pytest.mark.slow
def test_a_model_that_ran_nowhere_is_not_delivered(built):
    nowhere = built.run("--set", "providers=[cuda, qnn]")
    assert nowhere.code == 1
    assert "the model ran on none of its targets, so nothing vouches for it" in nowhere.out
    assert "add `cpu` to `providers`" in nowhere.out
