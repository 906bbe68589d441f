"""`init` in an empty folder: a small whole project, whose first run passes."""

import ast

import pytest
import yaml

from tests.first_recipe.conftest import files_in

FILES = {
    ".git", ".github", ".github/workflows", ".github/workflows/models.yaml", ".gitignore", "models",
    "models/classifier.py", "pyproject.toml", "recipes", "recipes/project.yaml",
}  # fmt: skip


@pytest.mark.slow
def test_the_first_run_of_a_new_project_passes(here, onnxbuild):
    said = onnxbuild("init")
    assert said.code == 0
    assert files_in(here) == FILES
    *_, last = said.out.splitlines()
    assert last == "next: onnxbuild run recipes/project.yaml"
    assert onnxbuild("lint", "recipes/project.yaml").code == 0
    run = onnxbuild("run", "recipes/project.yaml")
    assert run.code == 0, run.err
    for variant in ("fp32", "int8"):
        assert (here / "artifacts/out/project" / variant / "model.onnx").is_file()


def test_its_files_are_what_their_readers_take(here, onnxbuild):
    assert onnxbuild("init", "--name", "first").code == 0
    workflow = yaml.safe_load((here / ".github/workflows/models.yaml").read_text())
    commands = [step["run"] for step in workflow["jobs"]["build"]["steps"] if "run" in step]
    assert commands == [
        "pip install .",
        "onnxbuild lint recipes/*.yaml",
        "onnxbuild run recipes/*.yaml",
    ]
    assert yaml.safe_load((here / "recipes/first.yaml").read_text())["name"] == "first"
    ast.parse((here / "models/classifier.py").read_text())


def test_a_new_repository_may_have_its_first_files(here, onnxbuild):
    for name in ("README.md", "LICENSE", ".editorconfig"):
        (here / name).touch()
    assert onnxbuild("init").code == 0


@pytest.mark.parametrize("name", ["train.py", ".gitignore"])
def test_a_folder_that_has_more_is_left_as_it_is(here, onnxbuild, name):
    (here / name).write_text("mine")
    said = onnxbuild("init")
    assert (said.code, said.out) == (2, "")
    assert name in said.err
    assert files_in(here) == {".git", name}
    assert (here / name).read_text() == "mine"


def test_options_of_a_source_need_one(here, onnxbuild):
    assert onnxbuild("init", "-o", "a.yaml").code == 2
    assert onnxbuild("init", "--task", "x").code == 2
    assert files_in(here) == {".git"}
