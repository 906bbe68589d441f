"""Recipes of models that are converted in an environment of their framework's: read, refused, expanded. None is made."""

import pytest

from onnxbuild.building.request import Request, graph_of
from onnxbuild.core.environment import Environment
from onnxbuild.core.recipe import FILE_DATA, Axis, DummyInput
from onnxbuild.core.target import environment_of
from onnxbuild.lock.make import resolved_recipe
from tests.onnxkit.converters import saved_models as made
from tests.written_recipes import faults, loader

SAVED = "version: 1\nname: demo\nmodel: {saved_model: m}\n"
JAX = (
    "version: 1\nname: demo\nmodel: {jax: 'model.py:load', args: {n: 1}}\n"
    "dummy_inputs: {x: {dtype: float32, shape: [batch, 4]}}\n"
    "dynamic_axes: {batch: {min: 1, max: 8, example: 2}}\n"
)


@pytest.fixture
def load(tmp_path):
    made.write(tmp_path / "m", made.meta_graph(made.INIT, made.plain()))
    return loader(tmp_path)


def only(load, text):
    (recipe,) = load(text).recipes
    return recipe


def graph(tmp_path, text):
    (tmp_path / "demo.yaml").write_text(text)
    return graph_of(Request((tmp_path / "demo.yaml",)))


def test_three_lines_are_a_recipe(load):
    recipe = only(load, SAVED)
    assert recipe.frontend == "saved_model"
    assert recipe.model.target == FILE_DATA
    assert recipe.model.files == ("m/saved_model.pb", "m/variables/variables.index")
    assert recipe.inputs == (DummyInput("x", "float32", ("batch", 4)),)
    assert recipe.axes == (Axis("batch", min=1, max=8, example=2),)
    assert (recipe.outputs, recipe.opset, recipe.environment) == (("y",), 18, None)


def test_what_is_written_comes_first(load, tmp_path):
    made.write(tmp_path / "two", made.meta_graph(made.plain("a"), made.plain("b")))
    (tmp_path / "tf.txt").write_text("tensorflow-cpu==2.21.0\n")
    text = (
        "version: 1\nname: demo\nmodel:\n  saved_model: two\n  signature: b\n  rename: {y: logits, x: image}\n"
        "  environment: {requirements: tf.txt}\nopset: 20\ndummy_inputs: {image: {low: 0}}\n"
    )
    recipe = only(load, text)
    assert recipe.inputs[0].name == "image"
    assert recipe.outputs == ("logits",)
    assert recipe.environment == Environment("tf.txt", needs=("tensorflow", "tf2onnx"))
    assert recipe.model.args["signature"] == "b"
    assert resolved_recipe(recipe)["environment"] == {"requirements": "tf.txt", "python": ""}
    assert (tmp_path / "tf.txt") in load(text).files, "a release ships it"


def test_what_runs_the_framework_runs_in_the_list_that_comes_along(load, tmp_path):
    only(load, SAVED)
    steps = graph(tmp_path, SAVED).steps
    found = {name: environment_of(step.params) for name, step in steps.items()}
    listed = Environment(
        "<onnxbuild>/onnxkit/converters/tensorflow.txt", needs=("tensorflow", "tf2onnx")
    )
    assert {name: each for name, each in found.items() if each} == {
        "demo:convert": listed,
        "demo:reference": listed,
        "demo:benchmark": listed,  # its baseline
    }
    assert steps["demo:convert"].params.inputs == (), "another range converts nothing again"


def test_a_function_of_jax_is_a_callable_of_its_frontend(load, tmp_path):
    short = only(load, JAX)
    long = only(load, JAX.replace("{jax:", "{entrypoint:") + "frontend: jax\n")
    assert (short.frontend, short.model) == ("jax", long.model)
    assert short.model.target == "model.py:load"
    steps = graph(tmp_path, JAX).steps
    assert steps["demo:convert"].params.inputs == short.inputs
    assert environment_of(steps["demo:convert"].params).needs == ("jax", "jax2onnx")


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        (
            SAVED.replace("m}", "m, environment: {}}"),
            "environment is empty; expected one of the two",
            "`environment: {requirements: FILE}`",
        ),
        (
            SAVED.replace("m}", "m, environment: {pythn: x}}"),
            "key 'pythn' is not a key of a framework environment; did you mean 'python'?",
            "",
        ),
        (SAVED.replace("m}", "n}"), "model.saved_model: there is no folder 'n'", ""),
        (
            SAVED.replace("m}", "model.py}"),
            "model.py is a file; expected the folder",
            "saved_model.pb",
        ),
        (SAVED + "outputs: [y, z]\n", "the model has no output 'z'", "it has y"),
        (SAVED + "frontend: onnx\n", "frontend is 'onnx', and the model is named", "remove"),
        (SAVED + "formats: [onnx, torchscript]\n", "format 'torchscript' needs the frontend", ""),
        (JAX.replace(":load", ":lod"), "defines no 'lod'; did you mean 'load'?", "model.py:load"),
        (
            JAX.replace("{jax:", "{environment: {python: p}, entrypoint:"),
            "model has `environment`, and the frontend pytorch runs in onnxbuild's own",
            "remove `environment`",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_line(load, text, what, fix):
    found = faults(load, text)
    assert [what in each[0] and fix in each[2] for each in found] == [True], found
    assert found[0][1].startswith("demo.yaml:")


def test_two_signatures_are_listed_at_the_line(load, tmp_path):
    made.write(tmp_path / "two", made.meta_graph(made.plain("a"), made.plain("b")))
    (found,) = faults(load, SAVED.replace("m}", "two}"))
    assert found == (
        "two has 2 signatures: a, b",
        "demo.yaml:3:22",
        "write one of them next to `saved_model`: `signature: a`",
    )
