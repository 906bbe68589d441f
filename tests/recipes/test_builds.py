"""The recipes that come with the project and that no other test builds: all of them in one run, by the real command."""

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Project

RECIPES = Path(__file__).parents[2] / "recipes"
BUILT = (
    "cancer", "diabetes", "digits_exported", "digits_keras", "digits_operator", "digits_torchscript", "topics",
    "vad", "wine",
)  # fmt: skip
"""One of each kind of source whose framework is installed here."""


@pytest.mark.always
@pytest.mark.slow
def test_recipes_of_every_source_build_their_variants_pass_and_a_release_verifies(
    tmp_path, shared_results
):
    project = Project(tmp_path / "project", patience_s=400)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(RECIPES, project.folder / "recipes", ignore=ignored)
    project.write("pyproject.toml", "")
    done = project("run", *(f"recipes/{name}.yaml" for name in BUILT), "--set", QUICK)
    assert done.code == 0, done.out + done.err
    out = project.folder / "artifacts" / "out"
    manifests = [json.loads(path.read_text()) for path in sorted(out.glob("*/*/manifest.json"))]
    assert {each["name"] for each in manifests} == set(BUILT)
    for each in manifests:
        assert all(verdict["passed"] for verdict in each["validation"].values()), each["name"]
    again = project("run", *(f"recipes/{name}.yaml" for name in BUILT), "--set", QUICK)
    assert "nothing to do" in again.out
    shared_results.keep(project.folder / "artifacts")
    _release(project, "digits_torchscript")


def _release(project: Project, name: str) -> None:
    """Release a recipe with golden outputs of unusual values, and replay them."""
    assert project("lock", f"recipes/{name}.yaml").code == 0
    released = project("release", f"recipes/{name}.yaml", "--version", "1", "--allow-dirty")
    assert released.code == 0, released.out + released.err
    assert (project.folder / f"dist/{name}-1/golden/unusual").is_dir()
    verified = project("verify", f"dist/{name}-1", "--run")
    assert verified.code == 0, verified.out + verified.err


QUICK = "benchmark.max_time_s=0.1"
