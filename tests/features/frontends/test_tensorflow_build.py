"""SavedModels and TensorFlow Lite, converted and run by TensorFlow in an environment of its own; planted faults."""

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.target import CPU_TARGET, TargetGates
from onnxbuild.expansion.limits import tolerances_of
from onnxbuild.onnxkit.converters.frameworks import SAVED_MODEL
from onnxbuild.onnxkit.data.reference_feeds import ReferenceOptions
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.recipe.load import load_recipes
from onnxbuild.steps import convert_model, import_onnx, reference, validate
from tests.fakes.step_context import run_step
from tests.framework_environments import interpreter_of, onnxbuild

pytestmark = pytest.mark.slow

RECIPES = Path(__file__).parents[3] / "recipes"
LISTED = SAVED_MODEL.environment


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> str:
    return interpreter_of(LISTED, tmp_path_factory.mktemp("list"))


@pytest.fixture(scope="module")
def project(python, tmp_path_factory) -> Path:
    """A project with models of TensorFlow."""
    folder = tmp_path_factory.mktemp("tensorflow")
    (folder / "pyproject.toml").write_text("")
    script = Path(__file__).with_name("tensorflow_models.py")
    digits = RECIPES / "weights/digits_saved_model"
    subprocess.run([python, script, digits], cwd=folder, check=True, capture_output=True)
    return folder


def recipe_of(folder: Path, model: str, more: str = "") -> Recipe:
    """The recipe of a model; the names of its files are absolute, for steps without a project."""
    (folder / "demo.yaml").write_text(f"version: 1\nname: demo\nmodel: {model}\n{more}")
    (recipe,) = load_recipes(folder / "demo.yaml", project=folder).recipes
    files = tuple(str(folder / each) for each in recipe.model.files)
    return replace(recipe, model=replace(recipe.model, files=files))


def converted(recipe: Recipe, python: str, folder: Path) -> Path:
    environment = replace(LISTED, interpreter=python)
    params = convert_model.ConvertModelParams(recipe.model, environment, recipe.opset)
    made, context = run_step(convert_model.FRAMEWORKS["saved_model"], params, folder / "convert")
    assert made.metrics["tf2onnx"] == "1.17.0"
    params = import_onnx.ImportConvertedParams(
        "several", recipe.inputs, recipe.outputs, recipe.axes, {}
    )
    inputs = {"model": context.output("model")}
    _, context = run_step(import_onnx.CONVERTED, params, folder / "import", inputs)
    return context.output("model")


def computed(recipe: Recipe, python: str, folder: Path) -> Path:
    """What TensorFlow computes."""
    params = reference.FrameworkReferenceParams(
        recipe.model,
        replace(LISTED, interpreter=python),
        recipe.inputs,
        recipe.outputs,
        recipe.axes,
        None,
        ReferenceOptions(),
        {},
    )
    _, context = run_step(reference.FRAMEWORKS["saved_model"], params, folder / "reference")
    return context.output("reference")


def judged(recipe: Recipe, folder: Path, model: Path, expected: Path) -> list[str]:
    """What the gate finds in a model."""
    (variant,) = recipe.variants
    tolerances = tolerances_of(recipe, variant)
    params = validate.ValidateParams("fp32", "fp32", tolerances, CPU_TARGET, TargetGates())
    shutil.rmtree(folder / "validate", ignore_errors=True)
    inputs = {"model": model, "reference": expected}
    outcome, _ = run_step(validate.KIND, params, folder / "validate", inputs)
    return [each.what for each in outcome.findings]


def rewritten(made: Path, change) -> Path:
    """A copy of a model with a fault in it."""
    model = load_model(made)
    change(model.graph)
    target = made.parent / f"faulty-{change.__name__}"
    target.mkdir()
    save_model(model, target)
    return target


def one_weight(graph):
    planted = next(each for each in graph.initializer if list(each.dims) == [16, 4])
    weight = np.array(numpy_helper.to_array(planted))
    weight[3, 1] += 0.01
    planted.CopyFrom(numpy_helper.from_array(weight, planted.name))


def swapped_outputs(graph):
    one, other = (each.name for each in graph.output)
    names = {one: other, other: one}
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]


def test_a_wrong_weight_and_swapped_outputs_are_caught_and_the_bytes_are_the_same_elsewhere(
    python, project, tmp_path, monkeypatch
):
    recipe = recipe_of(project, "{saved_model: several, signature: score}")
    assert [each.name for each in recipe.inputs] == ["x"]
    assert recipe.outputs == ("b", "y")
    made, expected = converted(recipe, python, tmp_path), computed(recipe, python, tmp_path)
    assert judged(recipe, tmp_path, made, expected) == []
    for fault in (one_weight, swapped_outputs):
        found = judged(recipe, tmp_path, rewritten(made, fault), expected)
        assert any("differ by more than" in each for each in found), fault.__name__
    another = tmp_path / "another"
    shutil.copytree(project / "several", another / "several")
    (another / "pyproject.toml").write_text("")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    again = converted(
        recipe_of(another, "{saved_model: several, signature: score}"), python, another
    )
    assert (again / "model.onnx").read_bytes() == (made / "model.onnx").read_bytes()


def test_what_tensorflow_or_tf2onnx_refuse_is_said(python, project, tmp_path):
    lookup = recipe_of(
        project,
        "{saved_model: several, signature: look_up}",
        "dummy_inputs: {ids: {low: 0, high: 60}}\n",
    )
    with pytest.raises(StepError, match="TensorFlow fails on ids ") as caught:
        computed(lookup, python, tmp_path)
    assert caught.value.fix == "write `dummy_inputs: {ids: {low: 0, high: 50}}`"
    special = recipe_of(project, "{saved_model: several, signature: special}")
    with pytest.raises(StepError, match="tf2onnx has no ONNX for Digamma"):
        converted(special, python, tmp_path)


def test_recipes_that_init_writes_need_no_edit(project):
    for source in ("several", "digits.tflite"):
        done = onnxbuild(project, "init", source)
        assert done.returncode == 0, done.stdout + done.stderr
    written = (project / "recipes/several.yaml").read_text()
    assert "signature: look_up  # several has 3 signatures: look_up, score, special" in written
    done = onnxbuild(project, "lint", "recipes/several.yaml", "recipes/digits.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_recipes_of_tensorflow_build_and_pass(python, tmp_path):
    copy = tmp_path / "project"
    shutil.copytree(RECIPES, copy / "recipes", ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "pyproject.toml").touch()
    recipes = ("recipes/digits_saved_model.yaml", "recipes/digits_tflite.yaml")
    done = onnxbuild(copy, "run", *recipes, "--set", "benchmark.max_time_s=0.1")
    assert done.returncode == 0, done.stdout + done.stderr
    for name in ("digits_saved_model/int8", "digits_tflite/fp32"):
        manifest = json.loads((copy / f"artifacts/out/{name}/manifest.json").read_text())
        assert manifest["validation"]["cpu"]["passed"]
    for name, baseline in (
        ("digits_saved_model/int8", "tensorflow"),
        ("digits_tflite/fp32", "tensorflow-lite"),
    ):
        report = json.loads((copy / f"artifacts/out/{name}/benchmark.json").read_text())
        assert report["baseline"]["name"] == baseline
        assert report["points"][0]["results"][baseline]["speedup"] == 1.0
    assert "vs baseline" in done.stdout  # two of them in one table
