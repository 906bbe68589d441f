"""Which recipes a command means: a folder's, the project's own, those of pyproject.toml; and what is no recipe."""

import shlex

import pytest

from onnxbuild.terminal.at_a_glance import answer
from onnxbuild.typed.recipe_files import recipes_meant
from tests.cli.conftest import QUICK, RECIPE, CheapProject, Project

NOTHING = """\
error: no recipe is given, and {folder} holds none in recipes/
  fix: onnxbuild run FILE.yaml; a first recipe: onnxbuild init
"""


def named(name: str) -> str:
    return (RECIPE + QUICK).replace("name: tiny", f"name: {name}")


@pytest.fixture
def many(cheap: CheapProject) -> CheapProject:
    """Two recipes in recipes/, a base, a lock, and YAML of another kind."""
    (cheap.folder / "tiny.yaml").unlink()
    for name in ("one", "two"):
        text = named(name).replace("models/", "../models/")
        cheap.write(f"recipes/{name}.yaml", text)
    cheap.write("recipes/base.yaml", "version: 1\nopset: 17\n")
    cheap.edit("recipes/two.yaml", "version: 1\n", "version: 1\nextends: base.yaml  # the opset\n")
    cheap.write("recipes/compose.yml", "services: {}\n")
    cheap.write("recipes/one.lock", "version: 1\n")
    cheap.write("recipes/.hidden.yaml", "version: 1\n")
    return cheap


@pytest.mark.parametrize("arguments", [(), ("recipes",), ("recipes/", "recipes/one.yaml")])
def test_a_folder_and_no_argument_stand_for_all_recipes(many, arguments):
    for verb in ("lint", "plan", "run"):
        seen = many(verb, *arguments)
        assert seen.code == 0, seen.err
    assert "ok: one, two (" in many("lint", *arguments).out
    assert {path.name for path in (many.folder / "artifacts/out").glob("*")} == {
        "one",
        "two",
        ".laid",
    }


def test_recipes_at_the_root_are_meant_where_there_is_no_folder_recipes(cheap):
    assert cheap("lint").out.startswith("ok: tiny (")


def test_a_folder_below_the_root_of_a_project_means_all_of_the_project(many, monkeypatch):
    monkeypatch.chdir(many.folder / "models")
    assert recipes_meant([]) == ["../recipes/one.yaml", "../recipes/two.yaml"]
    twice = ["../recipes/one.yaml", "../models/../recipes/one.yaml"]
    assert recipes_meant(twice) == twice[:1]


@pytest.mark.parametrize(
    ("listed", "names"), [('["recipes/two.yaml"]', "two"), ('["recipes"]', "one, two")]
)
def test_pyproject_lists_what_is_built_without_an_argument(many, listed, names):
    many.write("pyproject.toml", f"[tool.onnxbuild]\ndefault = {listed}\n")
    assert f"ok: {names} (" in many("lint").out
    assert "ok: one (" in many("lint", "recipes/one.yaml").out


@pytest.mark.parametrize(
    ("listed", "reported"),
    [
        ('"recipes"', "`default` is 'recipes'; expected a list of recipes"),
        ('["gone.yaml"]', "`default` names 'gone.yaml', and there is no such file or folder"),
    ],
)
def test_a_faulty_default_says_what_to_write(many, listed, reported):
    many.write("pyproject.toml", f"[tool.onnxbuild]\ndefault = {listed}\n")
    seen = many("run")
    assert (seen.code, seen.err) == (
        2,
        (
            f"error: {many.folder}/pyproject.toml: {reported}\n"
            '  fix: write `default = ["recipes"]`: recipe files and folders of them\n'
        ),
    )


def test_nothing_to_build_says_how_to_begin(cheap):
    (cheap.folder / "tiny.yaml").unlink()
    seen = cheap("run")
    assert (seen.code, seen.err) == (2, NOTHING.format(folder=cheap.folder))


@pytest.mark.parametrize(
    ("file", "content", "reported"),
    [
        (
            "model.onnx",
            b"\x08\x07\x12\x05torch",
            (
                "error: model.onnx is a model or other data, not a recipe\n"
                "  fix: write a first recipe for it: onnxbuild init model.onnx\n"
            ),
        ),
        (
            "my model.py",
            b"def load(): ...\n",
            (
                "error: my model.py is Python, not a recipe\n"
                "  fix: write a first recipe: onnxbuild init 'my model.py:CALLABLE'\n"
            ),
        ),
    ],
)
def test_a_model_in_the_place_of_a_recipe_says_what_to_do(cheap, file, content, reported):
    (cheap.folder / file).write_bytes(content)
    for verb in ("run", "plan", "lint", "lock"):
        seen = cheap(verb, file, env={"COLUMNS": "80"})
        assert (seen.code, seen.out, seen.err) == (2, "", reported)
    assert f"To write its first recipe: onnxbuild init {shlex.quote(file)}" in cheap(file).err


def test_a_recipe_without_a_name_that_nobody_extends_is_not_passed_over(many):
    many.write("recipes/three.yaml", "version: 1\n")
    seen = many("lint")
    assert seen.code == 2
    assert "recipes/three.yaml" in seen.err


@pytest.mark.slow
def test_all_of_a_project_is_up_to_date_at_a_glance(project: Project, monkeypatch):
    assert project("run").code == 0
    monkeypatch.chdir(project.folder)
    for name, value in project.cache.items():
        monkeypatch.setenv(name, value)
    for words in (("run",), ("run", "."), ("run", "tiny.yaml")):
        found = answer(words)
        assert found is not None, words
        assert found[0][-1].startswith("up to date: ")
