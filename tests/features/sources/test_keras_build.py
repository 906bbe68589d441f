"""`model: {keras: FILE}`: kinds of layers exported, checked and validated; a wrong weight; the same bytes elsewhere."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from onnxbuild.core.recipe import Recipe
from onnxbuild.core.target import CPU_TARGET, TargetGates
from onnxbuild.expansion.limits import tolerances_of
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.recipe.load import load_recipes
from onnxbuild.steps import check, export, reference, validate
from tests import tiny_keras as tiny
from tests.fakes.step_context import run_step

pytestmark = tiny.NUMPY_2

DIGITS = Path(__file__).parents[3] / "recipes/weights/digits.keras"
HEAD = "version: 1\nname: demo\nmodel: {keras: model.keras}\n"


def recipe_of(folder: Path) -> Recipe:
    """The recipe of model.keras; the name of its file is absolute."""
    (folder / "pyproject.toml").write_text("")
    (folder / "demo.yaml").write_text(HEAD)
    (recipe,) = load_recipes(folder / "demo.yaml", project=folder).recipes
    files = tuple(str(folder / each) for each in recipe.model.files)
    return replace(recipe, model=replace(recipe.model, files=files))


def exported(recipe: Recipe, folder: Path) -> Path:
    options = export.ExportOptions()
    params = export.ExportParams(
        recipe.model, recipe.inputs, recipe.outputs, recipe.axes, recipe.opset, None, options
    )
    outcome, context = run_step(export.KIND, params, folder / "export")
    assert outcome.metrics["exporter"] == "dynamo"
    made = context.output("model")
    params = check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, recipe.opset)
    checked, _ = run_step(check.KIND, params, folder / "check", {"model": made})
    assert checked.findings == ()
    return made


def computed(recipe: Recipe, folder: Path) -> Path:
    """What Keras computes."""
    options = reference.ReferenceOptions()
    params = reference.ReferenceParams(
        recipe.model, recipe.inputs, recipe.outputs, recipe.axes, None, options
    )
    _, context = run_step(reference.KIND, params, folder / "reference")
    return context.output("reference")


def judged(recipe: Recipe, folder: Path, model: Path, expected: Path) -> list[str]:
    """What the gate finds in a model."""
    (variant,) = recipe.variants
    tolerances = tolerances_of(recipe, variant)
    params = validate.ValidateParams("fp32", "fp32", tolerances, CPU_TARGET, TargetGates())
    inputs = {"model": model, "reference": expected}
    outcome, _ = run_step(validate.KIND, params, folder / "validate", inputs)
    return [each.what for each in outcome.findings]


@pytest.mark.slow
@pytest.mark.parametrize("make", [tiny.recurrent, tiny.two])
def test_each_kind_of_layer_is_exported_checked_and_validated(tmp_path, make):
    tiny.saved(tmp_path / "model.keras", make)
    recipe = recipe_of(tmp_path)
    made = exported(recipe, tmp_path)
    assert [each.name for each in load_model(made).graph.output] == list(recipe.outputs)
    assert judged(recipe, tmp_path, made, computed(recipe, tmp_path)) == []


@pytest.mark.slow
def test_one_wrong_weight_of_the_digits_is_caught(tmp_path):
    shutil.copy(DIGITS, tmp_path / "model.keras")
    recipe = recipe_of(tmp_path)
    made, expected = exported(recipe, tmp_path), computed(recipe, tmp_path)
    assert judged(recipe, tmp_path, made, expected) == []
    model = load_model(made)
    planted = next(each for each in model.graph.initializer if list(each.dims) == [10])
    weight = np.array(numpy_helper.to_array(planted))
    weight[3] += 0.01
    planted.CopyFrom(numpy_helper.from_array(weight, planted.name))
    shutil.rmtree(made)
    made.mkdir()
    save_model(model, made)
    (found,) = judged(recipe, tmp_path, made, expected)
    assert "differ by more than" in found


@pytest.mark.slow
def test_an_archive_gives_the_same_bytes_in_two_folders(tmp_path):
    models = []
    for name in ("one", "another"):
        folder = tmp_path / name
        folder.mkdir()
        if models:
            shutil.copy(tmp_path / "one/model.keras", folder)
        else:
            tiny.saved(folder / "model.keras", tiny.dense)
        models.append((exported(recipe_of(folder), folder) / "model.onnx").read_bytes())
    assert models[0] == models[1]
