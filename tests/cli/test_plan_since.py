"""`plan --since`: the recipes that a commit can change, with the real git."""

import json
import random
import subprocess

import pytest

from tests.adapters.test_git import git
from tests.cli.conftest import CHEAP_HELPER, CHEAP_MODEL, QUICK, RECIPE, CheapProject

NAMES = ("alpha", "beta", "gamma")


def recipe_of(name):
    text = RECIPE + QUICK + "benchmark: {measure: false}\n"
    text = text.replace("benchmark: {max_time_s: 0.1, min_samples: 3}\n", "")
    return text.replace("name: tiny", f"name: {name}").replace("models/tiny", f"../models/{name}")


@pytest.fixture
def three(tmp_path):
    """Three recipes, committed; alpha and beta share a helper, gamma has none."""
    made = CheapProject(tmp_path / "project")
    made.write("pyproject.toml", "")
    made.write(".gitignore", "artifacts/\n__pycache__/\n")
    made.write("models/helper.py", CHEAP_HELPER)
    for name in NAMES:
        made.write(f"recipes/{name}.yaml", recipe_of(name))
        made.write(f"models/{name}.py", CHEAP_MODEL)
    made.write("models/gamma.py", "def load(width=8):\n    return 'gamma'\n")
    git(made.folder, "init", "-q")
    commit(made)
    return made


@pytest.fixture
def built(three):
    assert three("run", "recipes").code == 0
    return three


def commit(project):
    git(project.folder, "add", "-A")
    git(project.folder, "commit", "-q", "--allow-empty", "-m", "a change")


def changed(project, revision="HEAD"):
    done = project("plan", "recipes", "--since", revision, "--json")
    assert done.code == 0, done.err
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["recipe"] for line in lines] == list(NAMES)
    return {line["recipe"]: line["causes"] for line in lines if line["changed"]}


def test_without_a_change_no_recipe_is_named(built):
    assert changed(built) == {}
    done = built("plan", "recipes", "--since", "HEAD", "--exit-code")
    assert done.code == 0
    assert done.out.startswith("0 of 3 recipes can differ from ")


def test_an_edited_source_names_the_recipes_that_read_it_and_why(built):
    built.edit("models/helper.py", "ReLU", "GELU")
    found = changed(built)
    assert list(found) == ["alpha", "beta"]
    (cause,) = found["beta"]
    assert cause["path"] == str(built.folder / "models/helper.py")
    assert (cause["change"], cause["reason"]) == ("changed", "beta:export reads it")


def test_a_commit_counts_as_an_edit_does(built):
    built.edit("models/gamma.py", "gamma", "delta")
    commit(built)
    assert changed(built) == {}
    done = built("plan", "recipes", "--since", "HEAD~1", "--exit-code")
    assert done.code == 1
    assert "changed gamma  (recipes/gamma.yaml)" in done.out
    assert "models/gamma.py changed: gamma:export reads it" in done.out
    assert "1 of 3 recipes can differ" in done.out
    assert "onnxbuild run recipes/gamma.yaml" in done.err


def test_a_recipe_counts_with_its_base_and_its_lock(built):
    built.write("recipes/base.yaml", "version: 1\nopset: 17\n")
    built.write("recipes/beta.yaml", "extends: base.yaml\n" + recipe_of("beta"))
    built.write("recipes/gamma.lock", "")
    assert set(changed(built)) == {"beta", "gamma"}
    commit(built)
    assert built("run", "recipes").code == 0
    built.edit("recipes/base.yaml", "17", "16")
    assert set(changed(built)) == {"beta"}


def test_a_new_file_that_an_import_would_find_counts(built):
    built.write("models/unrelated.py", "x = 1\n")
    assert changed(built) == {}
    built.write("models/helper/__init__.py", CHEAP_HELPER)
    assert set(changed(built)) == {"alpha", "beta"}


def test_a_file_that_decides_what_is_installed_counts_for_all(built):
    built.write("requirements-dev.txt", "numpy\n")
    assert set(changed(built)) == set(NAMES)


def test_what_nothing_reads_counts_for_none(built):
    built.write("README.md", "# A project\n")
    built.write("docs/new/page.md", "text")
    assert changed(built) == {}


def test_of_a_recipe_that_was_never_built_each_source_and_each_new_file_counts(three):
    three.write("README.md", "# A project\n")
    commit(three)
    three.write("README.md", "# The project\n")
    assert changed(three) == {}
    three.edit("models/gamma.py", "gamma", "delta")
    (cause,) = changed(three)["alpha"]
    assert cause["reason"] == "it is not known what alpha:export reads"


def test_a_deleted_declared_file_counts(built):
    built.write("data/weights.bin", "one")
    built.edit("recipes/alpha.yaml", "alpha.py:load", "alpha.py:load, files: [../data/*.bin]")
    commit(built)
    assert built("run", "recipes").code == 0
    built.write("data/weights.bin", "two")
    assert set(changed(built)) == {"alpha"}
    built.write("data/weights.bin", "one")
    built.write("data/more.bin", "three")
    assert set(changed(built)) == {"alpha"}


def test_a_bad_revision_is_one_clear_error(built):
    done = built("plan", "recipes", "--since", "no-such-branch")
    assert done.code == 2
    assert "there is no commit 'no-such-branch' in this repository" in done.err
    assert done.out == ""
    refused = built("plan", "recipes", "--exit-code")
    assert (refused.code, "--since" in refused.err) == (2, True)


def test_a_project_without_git_is_one_clear_error(cheap):
    done = cheap("plan", "tiny.yaml", "--since", "HEAD")
    assert done.code == 2
    assert "the project is in no git repository" in done.err


EDITS = {
    "a helper": lambda p, n: p.write("models/helper.py", f"{CHEAP_HELPER}\n\nEDIT = {n}\n"),
    "a model": lambda p, n: p.write("models/gamma.py", f"def load():\n    return 'gamma {n}'\n"),
    "a recipe": lambda p, n: p.write(
        "recipes/beta.yaml", recipe_of("beta") + f"opset: {16 + n % 2}\n"
    ),
    "a shadow": lambda p, n: p.write(f"models/{('json', 'unused')[n % 2]}.py", f"x = {n}\n"),
    "a package": lambda p, n: p.write("models/helper/__init__.py", CHEAP_HELPER + f"# {n}\n"),
    "a page": lambda p, n: p.write("docs/page.md", str(n)),
    "one gone": lambda p, n: (p.folder / "models/unused.py").unlink(missing_ok=True),
}


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 5))]
)
def test_no_recipe_is_missed_that_a_commit_rebuilds(built, seed):
    chance = random.Random(seed)
    for number in range(4):
        for name in chance.sample(sorted(EDITS), chance.randint(1, 2)):
            EDITS[name](built, number + 10 * seed)
        commit(built)
        named = set(changed(built, "HEAD~1"))
        ran = set()
        for name in NAMES:
            done = built("run", f"recipes/{name}.yaml")
            assert done.code == 0, done.err
            if done.ran:
                ran.add(name)
        assert ran <= named


def test_git_is_asked_about_the_repository_of_the_project(three, tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", tmp_path / "other"], check=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    assert changed(three) == {}
