"""A recipe and variants that are called like steps, and a file that is called otherwise than its recipe."""

import json
import shlex

import pytest

from onnxbuild.core.errors import UsageError
from onnxbuild.typed.typed_names import find_name, find_recipe
from tests.cli.conftest import QUICK, RECIPE, make_cheap_project

RENAMED = (
    RECIPE.replace("name: tiny", "name: session-demo").replace("models/", "../models/") + QUICK
)
VARIANTS = "{check-fast: none, session: dynamic}"
FILE = "recipes/odd.yaml"


def _locked(project):
    project.write(FILE, RENAMED.replace("{fp32: none}", VARIANTS))
    done = project("lock", FILE)
    assert done.code == 0, done.out + done.err
    return project, done


@pytest.fixture(scope="module")
def once_built(tmp_path_factory):
    return _locked(make_cheap_project(tmp_path_factory.mktemp("odd") / "project"))


def test_what_run_prints_is_what_other_verbs_take(once_built):
    project, done = once_built
    (note,) = [
        json.loads(each.read_bytes()) for each in project.folder.glob("artifacts/runs/*/run.json")
    ]
    assert note["recipes"] == {"session-demo": FILE}
    printed = [line.split()[1] for line in done.out.splitlines() if line.startswith("done ")]
    assert {"session-demo:export", "session-demo:session/quantize"} <= set(printed)
    for name in ("session-demo:export", "session-demo:session/quantize"):
        why = project("why", name)
        assert (why.code, why.out.splitlines()[0]) == (0, f"{name} is up to date"), why.err
        assert project("log", name).code == 0
    for name in ("session-demo:session/quantize", "session/quantize"):
        plan = project("plan", FILE, "--only", name)
        assert [line.split()[1] for line in plan.out.splitlines()[:-1]] == [
            "session-demo:export", "session-demo:optimize", "session-demo:session/quantize",
        ]  # fmt: skip


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "recipes").mkdir()
    monkeypatch.chdir(tmp_path)

    def write(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)

    return write


def test_a_recipe_is_found_by_its_name_before_its_files(here):
    here("recipes/llama.yaml", "version: 1\nname: llama-step\n")
    here("recipes/bert.yaml", "version: 1\nname: bert-base\n")
    here("recipes/other.yaml", "version: 1\nname: bert\n")
    assert str(find_recipe("llama-step")) == "recipes/llama.yaml"
    assert str(find_recipe("llama-step@size=8")) == "recipes/llama.yaml"
    assert str(find_recipe("llama")) == "recipes/llama.yaml"
    assert str(find_recipe("bert")) == "recipes/other.yaml"  # `run` prints bert:export of that
    assert str(find_recipe("recipes/bert.yaml")) == "recipes/bert.yaml"
    assert str(find_recipe("bert-base")) == "recipes/bert.yaml"
    here("recipes/small/bert.yaml", "version: 1\nname: small-bert\n")
    assert str(find_recipe("small/bert")) == "recipes/small/bert.yaml"


def test_a_recipe_elsewhere_is_found_once_it_was_built(here):
    here("deep/llama.yaml", "version: 1\nname: llama-step\n")
    with pytest.raises(UsageError, match="there is no recipe 'llama-step'"):
        find_recipe("llama-step")
    files = {"llama-step": "deep/llama.yaml", "gone": "deep/gone.yaml", "evil": "../evil.yaml"}
    here("../evil.yaml", "version: 1\nname: evil\n")
    note = {"request": "", "exit_code": 0, "keys": [], "recipes": files}
    here("artifacts/runs/1/run.json", json.dumps(note))
    assert str(find_recipe("llama-step")) == "deep/llama.yaml"
    with pytest.raises(UsageError, match="there is no recipe 'gone'"):
        find_recipe("gone")
    with pytest.raises(UsageError, match="there is no recipe 'evil'"):
        find_recipe("evil")  # a store names files of the project alone


def test_a_name_may_come_from_a_base_or_a_template(here):
    here("shared/base.yaml", "version: 1\nname: from-base\n")
    here("recipes/a.yaml", "extends: ../shared/base.yaml\n")
    assert str(find_recipe("from-base")) == "recipes/a.yaml"
    here("models/tiny.py", "def load(): ...\n")
    named = RENAMED.replace("name: session-demo", 'name: "{{ kind }}-demo"\nvars: {kind: big}')
    here("recipes/b.yaml", named)
    assert str(find_recipe("big-demo")) == "recipes/b.yaml"


def test_a_name_that_several_files_have_is_asked_about(here):
    here("recipes/a.yaml", "version: 1\nname: twin\n")
    here("recipes/b.yaml", "version: 1\nname: twin\n")
    with pytest.raises(UsageError, match=r"several files hold a recipe named 'twin'") as caught:
        find_name("twin:export")
    assert caught.value.fix == "write recipes/a.yaml:export"
    here("recipes/twin.yaml", "version: 1\nname: twin\n")
    assert str(find_recipe("twin")) == "recipes/twin.yaml"  # its own file comes first


def test_suggested_commands_work_with_spaces_in_the_names_of_recipes_and_stores(cheap):
    (cheap.folder / "tiny.yaml").rename(cheap.folder / "my net.yaml")
    store = ("--store", "my store")
    assert (
        "fix: onnxbuild lock 'my net.yaml'\n"
        in cheap("release", "my net.yaml", "--version", "1.0").err
    )
    assert cheap("run", "my net.yaml", *store).code == 0
    blob = next((cheap.folder / "my store/cas/sha256").glob("*/*"))
    blob.unlink()
    blob.write_text("other bytes")
    found = cheap("cache", "verify", *store)
    assert found.code == 1
    *_, command = found.out.rstrip("\n").partition("to set them aside: ")
    assert command == "onnxbuild cache verify --repair --store 'my store'"
    assert "set aside: 1 of " in cheap(*shlex.split(command)[1:]).out

    cheap.edit("my net.yaml", "fp32: none", "full: none")
    seen = cheap("run", "my net.yaml", *store)
    assert "; to remove: onnxbuild clean --store 'my store'\n" in seen.err
    cheap.edit("my net.yaml", "quantization:", "quantisation:")
    assert "to see why: onnxbuild lint 'my net.yaml'\n" in cheap("clean", *store).err
