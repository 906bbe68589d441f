"""`model: {keras: FILE}`: kinds of layers exported, checked and validated; a wrong weight; the same bytes elsewhere."""

import shutil
from pathlib import Path

import pytest

from onnxbuild.onnxkit.model.model_files import load_model
from tests import tiny_keras as tiny
from tests.features.sources.built import (
    computed,
    exported,
    judged,
    judged_with_a_wrong_weight,
    recipe_of,
)

pytestmark = tiny.NUMPY_2

DIGITS = Path(__file__).parents[3] / "recipes/weights/digits.keras"
KERAS = "keras: model.keras"


@pytest.mark.slow
@pytest.mark.parametrize("make", [tiny.recurrent, tiny.two])
def test_each_kind_of_layer_is_exported_checked_and_validated(tmp_path, make):
    tiny.saved(tmp_path / "model.keras", make)
    recipe = recipe_of(tmp_path, KERAS)
    made = exported(recipe, tmp_path, "dynamo")
    assert [each.name for each in load_model(made).graph.output] == list(recipe.outputs)
    assert judged(recipe, tmp_path, made, computed(recipe, tmp_path)) == []


@pytest.mark.slow
def test_one_wrong_weight_of_the_digits_is_caught(tmp_path):
    shutil.copy(DIGITS, tmp_path / "model.keras")
    recipe = recipe_of(tmp_path, KERAS)
    made = exported(recipe, tmp_path, "dynamo")
    sound, (found,) = judged_with_a_wrong_weight(
        recipe, tmp_path, made, wrong=lambda each: list(each.dims) == [10], by=0.01
    )
    assert sound == []
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
        models.append(
            (exported(recipe_of(folder, KERAS), folder, "dynamo") / "model.onnx").read_bytes()
        )
    assert models[0] == models[1]
