"""The examples of docs/recipe.md are recipes that load."""

import re
from pathlib import Path

import yaml

PAGE = (Path(__file__).parents[2] / "docs/recipe.md").read_text()
BLOCKS = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_of_the_page_load(project):
    project.write("recipes/models/minilm.py", "def load(): ...\ndef sentences(): ...\n")
    project.write("recipes/weights/model.safetensors", "x")
    full, templated, matrix, child = BLOCKS
    assert project.recipe(full).name == "minilm"

    axes = yaml.safe_load(full)["dynamic_axes"] | {"sequence": None}
    assert list(axes) == ["batch", "sequence"]
    project.write("recipes/minilm.yaml", full)
    swept = project.load("extends: minilm.yaml\n" + templated + matrix).recipes
    assert [recipe.name for recipe in swept] == ["minilm@longest=128", "minilm@longest=512"]
    assert [recipe.axes[1].example for recipe in swept] == [4, 16]

    recipe = project.recipe(child)
    assert recipe.name == "minilm-cuda"
    assert [target.name for target in recipe.targets] == ["cpu", "cuda"]


def test_the_error_on_the_page_is_the_one_that_is_reported(project):
    project.write("recipes/models/minilm.py", "def load(): ...\ndef sentences(): ...\n")
    project.write("recipes/weights/model.safetensors", "x")
    (fault,) = project.faults(BLOCKS[0].replace("per_channel", "per_chanel"))
    where, _, what = fault.partition(": ")
    assert f"{where.replace('demo', 'minilm')}: {what}" in PAGE
