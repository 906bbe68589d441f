"""`model: {keras: FILE}`: what an archive says, what the recipe says over it, and what is refused; without Keras."""

import json
import shutil
import sys
import zipfile
from pathlib import Path

import pytest

from onnxbuild.core.recipe import FILE_DATA, Axis, DummyInput
from tests.written_recipes import faults, loader

HEAD = "version: 1\nname: demo\nmodel: {keras: model.keras}\n"
DIGITS = Path(__file__).parents[3] / "recipes/weights/digits.keras"


def layer(kind, name, sources=(), *, module="keras.layers", registered=None, **config):
    nodes = [
        {"args": [{"class_name": "__keras_tensor__", "config": {"keras_history": [each, 0, 0]}}], "kwargs": {}}
        for each in sources
    ]  # fmt: skip
    return {
        "module": module, "class_name": kind, "registered_name": registered, "name": name,
        "config": {"name": name, **config}, "inbound_nodes": nodes,
    }  # fmt: skip


def source(name, *shape, dtype="float32"):
    return layer("InputLayer", name, batch_shape=[None, *shape], dtype=dtype)


def functional(layers, inputs, outputs):
    config = {"name": "m", "layers": layers, "input_layers": inputs, "output_layers": outputs}
    return {
        "module": "keras",
        "class_name": "Functional",
        "registered_name": None,
        "config": config,
    }


def dense(*extra, **config):
    layers = [source("x", 4), *extra, layer("Dense", "y", ["x"], **config)]
    return functional(layers, ["x", 0, 0], ["y", 0, 0])


WORDS = functional(
    [
        source("words", None, dtype="int32"), source("image", 8, 8, 3),
        layer("Embedding", "table", ["words"], input_dim=50), layer("Dense", "y", ["table", "image"]),
    ],
    [["words", 0, 0], ["image", 0, 0]],
    {"score": ["y", 0, 0], "kind": ["y", 0, 1]},
)  # fmt: skip


def archive(path, config, *, weights="model.weights.h5", version="3.15.1"):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("config.json", json.dumps(config))
        file.writestr("metadata.json", json.dumps({"keras_version": version}))
        if weights:
            file.writestr(weights, b"")


@pytest.fixture
def load(tmp_path):
    return loader(tmp_path)


def only(load, text=HEAD):
    (recipe,) = load(text).recipes
    return recipe


@pytest.mark.parametrize("others", [[], [layer("NotEqual", "mask", ["words"])]])
def test_ids_are_in_range_of_the_smallest_table_whatever_else_takes_them(load, tmp_path, others):
    tables = [
        layer("Embedding", name, ["words"], input_dim=rows)
        for name, rows in (("a", 50), ("b", 9), ("c", 20))
    ]
    layers = [source("words", 5, dtype="int32"), *tables, *others]
    archive(tmp_path / "model.keras", functional(layers, ["words", 0, 0], ["a", 0, 0]))
    (words,) = only(load).inputs
    assert (words.low, words.high) == (0, 9)


def test_three_lines_are_a_recipe(load, tmp_path):
    shutil.copy(DIGITS, tmp_path / "model.keras")
    recipe = only(load)
    assert (recipe.frontend, recipe.model.target) == ("pytorch", FILE_DATA)
    assert recipe.inputs == (DummyInput("image", "float32", ("batch", 8, 8, 1)),)
    assert recipe.axes == (Axis("batch", 1, 8, 2),)
    assert recipe.outputs == ("logits",)
    assert recipe.model.args["outputs"] == ["logits"]


def test_inputs_are_in_kerass_order_and_outputs_go_by_their_sorted_keys(load, tmp_path):
    archive(tmp_path / "model.keras", WORDS)
    recipe = only(load)
    words, image = recipe.inputs
    assert (words.name, words.dtype, words.shape) == ("words", "int32", ("batch", "words_1"))
    assert (words.low, words.high) == (0, 50), "rows of the embedding"
    assert image.shape == ("batch", 8, 8, 3)
    assert recipe.outputs == ("kind", "score")


def test_what_the_recipe_writes_comes_first(load, tmp_path):
    archive(tmp_path / "model.keras", WORDS)
    recipe = only(
        load,
        HEAD + "dummy_inputs: {words: {shape: [batch, length], high: 9}}\n"
        "dynamic_axes: {length: {max: 128}}\noutputs: [score]\n",
    )
    assert recipe.inputs[0].shape == ("batch", "length")
    assert recipe.inputs[0].high == 9
    assert next(each.max for each in recipe.axes if each.name == "length") == 128
    assert recipe.outputs == ("score",)
    assert recipe.model.args["outputs"] == ["kind", "score"]
    renamed = only(load, HEAD + "outputs: [a, b]\n")
    assert renamed.model.args["outputs"] == [], "other names go by position"


CUSTOM = {"module": None, "class_name": "Mine", "registered_name": "Mine", "config": {}}


@pytest.mark.parametrize(
    ("config", "what", "fix"),
    [
        (dense(layer("Lambda", "twice", ["x"])), "layer 'twice' of model.keras is a Lambda",
         "keras.ops"),
        (CUSTOM, "needs the class Mine, which", "entrypoint"),
        ([], "a config.json that is no object", "save the model again"),
    ],
)  # fmt: skip
def test_what_no_archive_can_say_is_refused(load, tmp_path, config, what, fix):
    archive(tmp_path / "model.keras", config)
    ((found, _, mended),) = faults(load, HEAD)
    assert what in found
    assert fix in mended


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("dummy_inputs: {y: {low: 0}}\n", "the model has no input 'y'"),
        ("dummy_inputs: {x: {shape: [batch]}}\n", "has 2 dimensions; the recipe has 1"),
    ],
)
def test_the_recipe_keeps_to_the_model(load, tmp_path, text, what):
    archive(tmp_path / "model.keras", dense())
    assert what in faults(load, HEAD + text)[0][0]


def no_weights(path):
    archive(path, dense(), weights="")


def another_zip(path):
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a", b"")


def saved_model(path):
    path.mkdir()
    (path / "saved_model.pb").touch()


@pytest.mark.parametrize(
    ("make", "what", "fix"),
    [
        (no_weights, "has no model.weights.h5", "save the model again"),
        (another_zip, "is a zip without config.json and metadata.json", "save the model again"),
        (saved_model, "is a SavedModel of TensorFlow", "`model: {saved_model: "),
    ],
)
def test_each_file_that_is_no_archive_is_one_clear_error(load, tmp_path, make, what, fix):
    make(tmp_path / "model.keras")
    ((found, _, mended),) = faults(load, HEAD)
    assert what in found
    assert fix in mended


def test_reading_imports_no_keras(load, tmp_path):
    before = "keras" in sys.modules
    shutil.copy(DIGITS, tmp_path / "model.keras")
    only(load)
    assert ("keras" in sys.modules) == before
