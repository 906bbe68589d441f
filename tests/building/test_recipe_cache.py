"""A recipe that was read before is the same recipe, and any change that matters is seen."""

import os
import sqlite3
import time
from pathlib import Path

import pytest

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.building.recipe_cache import RecipeCache
from onnxbuild.recipe.load import LoadedRecipes, load_recipes
from onnxbuild.recipe.stored import from_text, to_text
from tests.recipes.test_smollm2 import RECIPE as SMOLLM2

ROOT = Path(__file__).parents[2]
BASE = """\
version: 1
opset: 18
dummy_inputs: {x: {dtype: float32, shape: [batch, 4]}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
"""
RECIPE = """\
extends: base.yaml
version: 1
name: demo
vars: {width: 8}
matrix: {depth: [1, 2]}
model:
  entrypoint: models/net.py:load
  args: {width: "{{ width }}", depth: "{{ depth }}", nested: [1, 1.0, true, null, "1", {a: []}]}
  files: [weights/*, ~/cache/**]
  env: [LEVEL]
quantization: {fp32: none, int8: dynamic}
providers: [cpu, {cuda: {device_id: 1}}]
"""


class World:
    """A project, and a cache of its recipe that lives in one index."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.index = Index(folder / "index.db")
        self.environment = {"LEVEL": "1"}
        self.settings: dict[str, str] = {}
        self.site = folder / "site"
        self.write("base.yaml", BASE)
        self.write("demo.yaml", RECIPE)
        self.write("models/net.py", "def load(width, depth, nested): ...\n")
        self.write("weights/a.bin", "a")
        self.write("../home/cache/w.bin", "w")
        self.package("jinja2", "3.0")

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def package(self, name: str, version: str) -> None:
        for path in self.site.glob(f"{name}-*"):
            (path / "RECORD").unlink()
            path.rmdir()
        info = self.site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "RECORD").write_text(f"{name}.py,sha256={version},1\n")

    @property
    def cache(self) -> RecipeCache:
        """As a new process has it."""
        stats = StatCache(self.index)
        packages = Distributions(stats, (str(self.site),))
        return RecipeCache(self.index, stats, packages, self.environment)

    def load(self) -> LoadedRecipes:
        return load_recipes(
            self.folder / "demo.yaml",
            project=self.folder,
            overrides=self.settings,
            environment=self.environment,
        )

    def recall(self) -> LoadedRecipes | None:
        return self.cache.recall(self.folder / "demo.yaml", self.folder, self.settings)

    def remember(self, loaded: LoadedRecipes | None = None, *, started_ns: int | None = None):
        started_ns = time.time_ns() if started_ns is None else started_ns
        return self.cache.remember(
            self.folder / "demo.yaml",
            self.folder,
            self.settings,
            loaded or self.load(),
            started_ns=started_ns,
        )


@pytest.fixture
def world(tmp_path, monkeypatch):
    made = World(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    time.sleep(0.03)  # what is there is older than a clock tick
    return made


def test_a_recipe_that_nothing_changed_is_recalled_as_it_was_read(world):
    assert world.recall() is None
    loaded = world.load()
    assert len(loaded.recipes) == 2
    assert world.remember(loaded)
    assert world.recall() == loaded


@pytest.mark.parametrize(
    "name", sorted(path.name for path in set((ROOT / "recipes").glob("*.yaml")) - {SMOLLM2})
)
def test_every_recipe_of_this_project_can_be_stored(name):
    loaded = load_recipes(ROOT / "recipes" / name, project=ROOT)
    text = to_text(loaded)
    assert text is not None
    again = from_text(text)
    assert again == loaded
    assert repr(again.recipes) == repr(loaded.recipes)  # 1, 1.0 and True are equal


def change_content(world):
    world.write("demo.yaml", RECIPE.replace("width: 8", "width: 9"))


def change_base(world):
    world.write("base.yaml", BASE.replace("opset: 18", "opset: 17"))


def change_setting(world):
    world.settings = {"opset": "17"}


def change_variable(world):
    world.environment = {"LEVEL": "2"}


def lose_variable(world):
    world.environment = {}


def add_file(world):
    world.write("weights/b.bin", "b")


def remove_file(world):
    (world.folder / "weights/a.bin").unlink()


def make_a_link_lead_somewhere(world):
    world.write("elsewhere.bin", "c")


def add_outside(world):
    world.write("../home/cache/deep/x.bin", "x")


def move_home(world):
    os.environ["HOME"] = str(world.folder)


def lose_name(world):
    world.write("models/net.py", "def other(): ...\n")


def lose_code(world):
    (world.folder / "models/net.py").unlink()


def install_another_reader(world):
    world.package("jinja2", "3.1")


@pytest.mark.parametrize(
    "change",
    [
        change_content,
        change_base,
        change_setting,
        change_variable,
        lose_variable,
        add_file,
        remove_file,
        make_a_link_lead_somewhere,
        add_outside,
        move_home,
        lose_name,
        lose_code,
        install_another_reader,
    ],
)
def test_whatever_decides_a_recipe_is_seen(world, change):
    (world.folder / "weights/link.bin").symlink_to("../elsewhere.bin")
    time.sleep(0.03)
    assert world.remember()
    assert world.recall() is not None
    change(world)
    assert world.recall() is None


def test_what_does_not_decide_it_changes_nothing(world):
    assert world.remember()
    world.write("models/net.py", "import torch\n\ndef load(width): return torch\n")
    world.write("weights/a.bin", "other weights")
    world.write("other.yaml", "version: 1\n")
    world.environment["OTHER"] = "x"
    os.utime(world.folder / "demo.yaml")
    assert world.recall() is not None


@pytest.mark.parametrize("name", ["demo.yaml", "base.yaml", "weights/a.bin", "models/net.py"])
def test_what_changes_as_it_is_read_is_not_kept(world, name):
    started_ns = time.time_ns()
    loaded = world.load()
    path = world.folder / name
    content = path.read_text()
    path.unlink()
    path.write_text(content)
    assert not world.remember(loaded, started_ns=started_ns)
    assert world.recall() is None


def test_a_damaged_row_is_no_recipe(world):
    assert world.remember()
    with sqlite3.connect(world.index.path) as connection:
        connection.execute("UPDATE recipe SET recipes = replace(recipes, '17', '16')")
        connection.execute("UPDATE recipe SET recipes = replace(recipes, '18', '17')")
    connection.close()
    assert world.recall() is None
    with sqlite3.connect(world.index.path) as connection:
        connection.execute("UPDATE recipe SET recipes = NULL")
    connection.close()
    assert world.recall() is None


def test_a_value_that_has_no_stored_form_is_not_kept(world):
    loaded = world.load()
    loaded.recipes[0].model.args["strange"] = {1, 2}
    assert not world.remember(loaded)
