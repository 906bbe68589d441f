"""Recipes of models that are files, built step by step: exported and checked, computed by their own framework, judged."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
from onnx import numpy_helper

from onnxbuild.core.recipe import Recipe
from onnxbuild.core.target import CPU_TARGET, TargetGates
from onnxbuild.expansion.limits import tolerances_of
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.recipe.load import load_recipes
from onnxbuild.steps import check, export, reference, validate
from tests.fakes.step_context import run_step


def recipe_of(folder: Path, model: str) -> Recipe:
    """The recipe of `model: {...}`; the names of its files are absolute."""
    (folder / "pyproject.toml").write_text("")
    (folder / "demo.yaml").write_text(f"version: 1\nname: demo\nmodel: {{{model}}}\n")
    (recipe,) = load_recipes(folder / "demo.yaml", project=folder).recipes
    files = tuple(str(folder / each) for each in recipe.model.files)
    return replace(recipe, model=replace(recipe.model, files=files))


def exported(recipe: Recipe, folder: Path, exporter: str = "auto") -> Path:
    options = export.ExportOptions(exporter=exporter)
    params = export.ExportParams(
        recipe.model, recipe.inputs, recipe.outputs, recipe.axes, recipe.opset, None, options
    )
    _, context = run_step(export.KIND, params, folder / "export")
    made = context.output("model")
    params = check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, recipe.opset)
    checked, _ = run_step(check.KIND, params, folder / "check", {"model": made})
    assert checked.findings == ()
    return made


def computed(recipe: Recipe, folder: Path) -> Path:
    """What the model's own framework computes."""
    options = reference.ReferenceOptions()
    params = reference.ReferenceParams(
        recipe.model, recipe.inputs, recipe.outputs, recipe.axes, None, options
    )
    _, context = run_step(reference.KIND, params, folder / "reference")
    return context.output("reference")


def judged(recipe: Recipe, folder: Path, model: Path, expected: Path) -> list[str]:
    """What the gate finds in a model, with the tolerances of the recipe."""
    (variant,) = recipe.variants
    tolerances = tolerances_of(recipe, variant)
    params = validate.ValidateParams("fp32", "fp32", tolerances, CPU_TARGET, TargetGates())
    inputs = {"model": model, "reference": expected}
    outcome, _ = run_step(validate.KIND, params, folder / "validate", inputs)
    assert outcome.metrics["points"] >= 2
    return [each.what for each in outcome.findings]


def judged_with_a_wrong_weight(recipe, folder, made, *, wrong, by):
    """What the gate finds in the sound model, and after one element of the weight that `wrong` accepts grew."""
    expected = computed(recipe, folder)
    sound = judged(recipe, folder, made, expected)
    model = load_model(made)
    planted = next(each for each in model.graph.initializer if wrong(each))
    weight = np.array(numpy_helper.to_array(planted))
    weight[3] += by
    planted.CopyFrom(numpy_helper.from_array(weight, planted.name))
    shutil.rmtree(made)
    made.mkdir()
    save_model(model, made)
    return sound, judged(recipe, folder, made, expected)
