"""A slip in a recipe has a fault at its line, and a misspelt key one alone whose fix gives the recipe that was meant."""

import copy
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from onnxbuild.core.errors import RecipeError, RecipeErrors
from onnxbuild.recipe.load import load_recipes
from tests.recipe.typed_fixes import typed

RECIPES = Path(__file__).parents[2] / "recipes"
_MORE = ("minilm_search", "digits_pipeline", "bert", "openvino", "minilm_folder", "wine")
NAMED = ["digits", "digits_keras", *(pytest.param(name, marks=pytest.mark.slow) for name in _MORE)]
_OWN_NAMES = ("dummy_inputs", "dynamic_axes", "quantization", "outputs", "args", "rename")
"""Names below these are the user's own: another one is no fault."""


def swapped(key: str) -> str:
    return key[0] + key[2] + key[1] + key[3:] if len(key) > 2 and key[1] != key[2] else f"{key}_"


def camel(key: str) -> str:
    first, *rest = key.split("_")
    return first + "".join(map(str.title, rest))


SLIPS: dict[str, Callable[[str], str]] = {
    "two letters swapped": swapped,
    "a letter lost": lambda key: key[:-2] + key[-1],
    "upper case": str.title,
    "a hyphen": lambda key: key.replace("_", "-"),
    "camel case": camel,
    "one word": lambda key: key.replace("_", ""),
    "a plural": lambda key: key.removesuffix("s") if key.endswith("s") else f"{key}s",
}


def members(tree: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """(path, value) of every key below."""
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield (*above, key), value
            yield from members(value, (*above, key))
    for number, item in enumerate(tree if isinstance(tree, list) else ()):
        yield from members(item, (*above, number))


def changed(tree: Any, path: tuple[Any, ...], key: str, value: Any) -> Any:
    """A copy with another key and value for the key at `path`, at its place."""
    new = copy.deepcopy(tree)
    above = new
    for part in path[:-1]:
        above = above[part]
    entries = [(key, value) if each == path[-1] else (each, old) for each, old in above.items()]
    above.clear()
    above.update(entries)
    return new


def slips_of_keys(tree: Any) -> Iterator[tuple[str, Any]]:
    """(what was done to which key, the recipe after it)."""
    for path, value in members(tree):
        key = path[-1]
        if len(path) > 1 and path[-2] in _OWN_NAMES:
            continue
        for name, slip in SLIPS.items():
            if slip(key) != key:
                yield f"{'.'.join(map(str, path))}: {name}", changed(tree, path, slip(key), value)


def in_lines(tree: Any) -> str:
    """A recipe with each key of the top on a line."""
    lines = [
        yaml.safe_dump({key: each}, default_flow_style=True, width=10**6).strip()[1:-1]
        for key, each in tree.items()
    ]
    return "\n".join(lines) + "\n"


def faults_of(recipe: Path, text: str) -> tuple[RecipeError, ...]:
    recipe.write_text(text)
    try:
        load_recipes(recipe, project=recipe.parents[1])
    except RecipeErrors as errors:
        return errors.faults
    return ()


def assert_meant(recipe: Path, tree: Any, done: str, slipped: Any) -> None:
    """The one fault of a slip has a fix that gives the recipe back."""
    text = in_lines(slipped)
    faults = faults_of(recipe, text)
    assert len(faults) == 1, f"{done}\n" + "\n".join(map(str, faults))
    _, line, column = faults[0].where.rsplit(":", 2)
    mended = typed(text, int(line), int(column), faults[0].fix)
    assert mended is not None, f"{done}\n{faults[0]}"
    assert yaml.safe_load(mended) == tree, f"{done}\n{faults[0]}\n{mended}"


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("meant") / "project"
    shutil.copytree(RECIPES, folder / "recipes")
    return folder


@pytest.mark.parametrize("name", NAMED)
def test_the_fix_of_a_misspelt_key_gives_the_recipe_that_was_meant(project, name):
    tree = yaml.safe_load((RECIPES / f"{name}.yaml").read_text())
    recipe = project / "recipes" / f"{name}_slipped.yaml"
    assert not faults_of(recipe, in_lines(tree))
    for done, slipped in slips_of_keys(tree):
        assert_meant(recipe, tree, done, slipped)


RECIPE = """\
version: 1
name: tiny
model: m.py:load
dummy_inputs:
  x: {dtype: float32, shape: [batch, 4]}
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
calibration:
  data: m.py:data
  samples: 4
quantization:
  int8:
    mode: static
    per_channel: true
"""


def faults_at(folder, text):
    (folder / "m.py").write_text("def load(): ...\n\n\ndef data(): ...\n")
    (folder / "tiny.yaml").write_text(text)
    try:
        load_recipes(folder / "tiny.yaml", project=folder)
    except RecipeErrors as errors:
        return [(int(each.where.split(":")[1]), each.fix) for each in errors.faults]
    return []


def test_the_recipe_is_sound(tmp_path):
    assert faults_at(tmp_path, RECIPE) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "fix"),
    [
        ("  samples: 4", "  samples:4", 10, "write `samples: 4`"),
        ("samples: 4", "samples: {{ n }}", 10, 'quote the value, as in `"{{ n }}"`'),
        ("[batch, 4]", '["batch", "4"]', 5, "write `4`"),
        ("[batch, 4]}", "[batch, 4]]}", 5, "add the `}` or the `,`"),
        (
            "    mode: static\n    per",
            "  mode: static\n  per",
            13,
            "write `quantization: {NAME: {mode: static, ...}}`",
        ),
    ],
)
def test_a_colon_a_level_or_quotes(tmp_path, old, new, line, fix):
    assert RECIPE.count(old) == 1
    assert (line, fix) in faults_at(tmp_path, RECIPE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "line", "place"),
    [
        ("  x: {dtype: float32, ", "  dtype: float32\n  x: {", 5, "dummy_inputs.x.dtype"),
        (", example: 2}", "}\n  example: 2", 8, "dynamic_axes.batch.example"),
    ],
)
def test_a_key_a_level_up_is_moved_and_nothing_is_missing(tmp_path, old, new, line, place):
    text = RECIPE.replace(old, new)
    (at, fix), *others = faults_at(tmp_path, text)
    assert (at, fix) == (line, f"move it to `{place}`")
    assert not [each for _, each in others if "write a value" in each or each.startswith("add `d")]
