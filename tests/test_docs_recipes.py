"""Every block of YAML in the documents is a recipe, or a part of one, that the schema accepts."""

import json
import re
import textwrap
from pathlib import Path

import pytest

from onnxbuild.document.faults import Faults
from onnxbuild.document.node import plain
from onnxbuild.recipe.schema.lean_jsonschema import Draft202012Validator
from onnxbuild.recipe.yaml.read import read_yaml

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/cookbook/*.md")])
NO_RECIPES = {"ci.md", "cluster.md"}
"""Pages whose blocks are something else: workflows of GitHub, hooks of pre-commit, Dask's settings."""

_SCHEMA = Draft202012Validator(json.loads((ROOT / "schemas/recipe.schema.json").read_text()))
_FENCE = re.compile(r"^( *)```ya?ml\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
_REST = {
    "version": 1,
    "name": "documented",
    "model": "models/documented.py:load",
    "dummy_inputs": {"x": {"dtype": "float32", "shape": ["batch", 8]}},
    "dynamic_axes": {"batch": {"min": 1, "max": 8, "example": 2}},
}
"""What a recipe needs, for blocks that show a part of one."""


def _faults(block: str) -> list[str]:
    """Return what is wrong with a block, read as a recipe is."""
    faults = Faults()
    node = read_yaml(textwrap.dedent(block).encode(), "block", faults)
    if faults or node is None:
        return str(faults.error(["block"])).splitlines()
    shown = plain(node)
    whole = {"version", "name"} <= set(shown)
    errors = _SCHEMA.iter_errors(shown if whole else {**_REST, **shown})
    return [f"{error.json_path}: {error.message}" for error in errors]


def _blocks() -> list:
    found = []
    for page in PAGES:
        if page.name not in NO_RECIPES:
            text = page.read_text()
            for block in _FENCE.finditer(text):
                line = text.count("\n", 0, block.start()) + 2
                found.append(pytest.param(block[2], id=f"{page.relative_to(ROOT)}:{line}"))
    return found


@pytest.mark.parametrize("block", _blocks())
def test_a_block_of_yaml_is_a_recipe_or_a_part_of_one(block):
    assert _faults(block) == []


@pytest.mark.parametrize(
    "block",
    ["quantisation: fp16\n", "session: {}\nsession: {}\n", "quantization: {a: {bits: 3}}\n"],
)
def test_a_block_that_no_recipe_may_hold_is_found(block):
    assert _faults(block) != []
