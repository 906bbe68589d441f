from pathlib import Path

import numpy as np
import pytest

from onnxbuild.core.errors import RecipeErrors
from onnxbuild.recipe.declared.definitions import top_level_names
from tests.recipe.trees import make_files


def model(text: str) -> str:
    return f"version: 1\nname: demo\nmodel: {text}\ndummy_inputs: {{x: {{dtype: float32, shape: [2]}}}}\n"


def test_roots_go_from_the_file_to_the_project(project):
    project.write("model.py", "def load(): ...\n")
    recipe = project.recipe(model("../model.py:load"))
    assert recipe.model.target == "model.py:load"
    assert recipe.model.roots == (".", "recipes")


def test_what_lies_outside_of_the_project_is_named_by_what_it_is(project, tmp_path_factory):
    outside = tmp_path_factory.mktemp("outside")
    (outside / "model.py").write_text("def load(): ...\n")
    (outside / "weights").mkdir()
    (outside / "weights/w.bin").write_text("x")
    recipe = project.recipe(
        model(f"{{entrypoint: '{outside}/model.py:load', files: ['{outside}/weights/*.bin']}}")
    )
    assert recipe.model.target == "<model code>/model.py:load"
    assert recipe.model.files == ("<model 1>/w.bin",)
    assert recipe.model.roots == ("<model code>", "recipes", ".")
    assert recipe.model.outside == {
        "<model code>": outside.as_posix(),
        "<model 1>": f"{outside.as_posix()}/weights",
    }


def test_names_outside_do_not_depend_on_the_place_nor_on_the_order(project, tmp_path_factory):
    one, two = tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")
    for folder in (one, two):
        make_files(folder, "cache/snap/a.json", "cache/blobs/a", "other/w.bin", "lone.bin")
    found = []
    for folder in (one, two):
        patterns = [f"{folder}/cache/**", f"{folder}/other", f"{folder}/lone.bin"]
        for order in (patterns, patterns[::-1]):
            text = ", ".join(f"'{each}'" for each in order)
            recipe = project.recipe(
                model(f"{{entrypoint: models/model.py:load, files: [{text}]}}")
            )
            found.append(recipe.model.files)
    assert set(found) == {
        ("<model 1>/blobs/a", "<model 1>/snap/a.json", "<model 2>/lone.bin", "<model 3>/w.bin")
    }


def test_the_home_folder_is_expanded(project, tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    make_files(home, ".cache/hub/models--x/refs/main")
    text = "{entrypoint: models/model.py:load, files: [~/.cache/hub/models--x/**]}"
    recipe = project.recipe(model(text))
    assert recipe.model.files == ("<model 1>/refs/main",)
    assert recipe.model.outside == {"<model 1>": f"{home}/.cache/hub/models--x"}


def test_a_declared_file_may_be_in_an_installed_package(project):
    text = (
        "{entrypoint: models/model.py:load, files: ['package:numpy/version.py', models/model.py]}"
    )
    recipe = project.recipe(model(text))
    assert recipe.model.files == ("<model 1>/version.py", "recipes/models/model.py")
    assert recipe.model.outside == {"<model 1>": Path(np.__file__).parent.as_posix()}
    (fault,) = project.faults(model(text.replace("numpy/", "no_such_package/")))
    assert "no package 'no_such_package' is installed for this Python" in fault


def test_files_are_expanded_and_sorted(project):
    for name in ("b.bin", "a.bin", "deep/c.bin", "deep/.hidden", "d.txt"):
        project.write(f"recipes/weights/{name}", "x")
    loaded = project.load(
        model(
            "{entrypoint: 'models/model.py:load', files: [weights, 'weights/*.bin', '**/*.txt']}"
        )
    )
    assert loaded.recipes[0].model.files == (
        "recipes/weights/a.bin",
        "recipes/weights/b.bin",
        "recipes/weights/d.txt",
        "recipes/weights/deep/c.bin",
    )
    folders = {folder.relative_to(project.folder).as_posix() for folder in loaded.folders}
    assert {"recipes", "recipes/weights", "recipes/weights/deep"} <= folders


def test_variables_are_named_or_given(project):
    named = "{entrypoint: 'models/model.py:load', env: [CACHE]}"
    loaded = project.load(model(named), environment={"CACHE": "/x", "OTHER": "y"})
    assert loaded.recipes[0].model.env == {"CACHE": "/x"}
    given = "{entrypoint: 'models/model.py:load', env: {THREADS: 4, NAME: x}}"
    assert project.recipe(model(given)).model.env == {"THREADS": "4", "NAME": "x"}


@pytest.mark.parametrize(
    "source",
    [
        "def load(): ...",
        "class load: ...",
        "from x import y as load",
        "if x:\n  def load(): ...\nelse:\n  load = None",
        "try:\n  from x import load\nexcept ImportError:\n  load = None",
    ],
)
def test_a_name_bound_at_module_level_is_found(source):
    assert "load" in (top_level_names(source.encode()) or ())


@pytest.mark.parametrize("source", ["def f():\n  load = 1", "class C:\n  def load(self): ..."])
def test_a_name_bound_elsewhere_is_not(source):
    assert "load" not in (top_level_names(source.encode()) or ())


@pytest.mark.parametrize("source", [b"from x import *", b"def __getattr__(name): ...", b"def ("])
def test_a_file_that_can_not_be_judged_is_left_to_the_step(source):
    assert top_level_names(source) is None


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("code/other.py:load", "write `../code/other.py:load`"),
        ("{entrypoint: models/model.py:load, files: ['data/*.npz']}", "write `../data/*.npz`"),
        ("{onnx: data/m.onnx}", "write `../data/m.onnx`"),
    ],
)
def test_a_path_from_the_projects_root_has_the_same_from_the_recipe_as_its_fix(
    project, written, fix
):
    project.write("code/other.py", "def load(): ...\n")
    project.write("data/a.npz", "")
    project.write("data/m.onnx", "")
    with pytest.raises(RecipeErrors) as caught:
        project.load(model(written))
    assert any(each.fix.startswith(fix) for each in caught.value.faults)


@pytest.mark.parametrize(
    ("written", "fix"),
    [
        ("../data/m.onnx", "write `model: {onnx: ../data/m.onnx}`"),
        ("folder", "write `model: {transformers: folder}`"),
        ("models/none.py", "write `models/none.py:CALLABLE`"),
        ("models/model:load", "write `models/model.py:load`"),
    ],
)
def test_a_text_that_names_no_callable_has_what_was_meant_as_its_fix(project, written, fix):
    project.write("data/m.onnx", "")
    project.write("recipes/folder/config.json", '{"model_type": "bert"}')
    with pytest.raises(RecipeErrors) as caught:
        project.load(model(written))
    (fault,) = caught.value.faults
    assert fault.fix == fix


@pytest.mark.parametrize(
    ("written", "named"),
    [
        (
            "{huggingface: folder}",
            ["write `transformers`", "write a path relative to this recipe"],
        ),
        (
            "{path: models/model.py, function: load}",
            [
                "write `entrypoint`",
                "write `models/model.py:load`",
                "remove it: `entrypoint` is there already",
            ],
        ),
        ("{args: {}}", ["add `entrypoint: FILE.py:CALLABLE`"]),
    ],
)
def test_a_key_of_another_tool_is_translated_and_not_also_missing(project, written, named):
    with pytest.raises(RecipeErrors) as caught:
        project.load(model(written))
    assert [each.fix for each in caught.value.faults] == named


def test_a_file_that_shares_only_its_ending_is_not_the_one_that_is_meant(project):
    for name in ("wine", "diabetes"):
        project.write(f"{name}.py", "LOAD = 1\n\ndef loader(): ...\n")
    with pytest.raises(RecipeErrors) as caught:
        project.load(model("../own.py:load"))
    assert "did you mean" not in str(caught.value)
    with pytest.raises(RecipeErrors) as caught:
        project.load(model("../wien.py:load"))
    assert [each.fix for each in caught.value.faults] == ["write `../wine.py:load`"]
    with pytest.raises(RecipeErrors) as caught:
        project.load(model("../wine.py:load"))
    assert [each.fix for each in caught.value.faults] == ["write `../wine.py:loader`"]
