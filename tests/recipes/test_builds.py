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
def test_recipes_of_every_source_build_and_their_variants_pass(tmp_path, shared_results):
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


QUICK = "benchmark.max_time_s=0.1"
