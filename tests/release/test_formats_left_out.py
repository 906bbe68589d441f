"""What a release says of formats beside ONNX."""

import pytest

from onnxbuild.core.errors import UsageError
from onnxbuild.recipe.load import load_recipes
from onnxbuild.release.release import formats_left_out

RECIPE = """\
version: 1
name: x
model: model.py:load
dummy_inputs: {x: {dtype: float32, shape: [batch, 4]}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
"""


def recipes_of(folder, text):
    (folder / "model.py").write_text("def load(): ...\n")
    (folder / "file.yaml").write_text(RECIPE + text)
    return load_recipes(folder / "file.yaml", project=folder).recipes


def test_formats_that_are_not_in_the_release_are_named(tmp_path):
    recipes = recipes_of(tmp_path, "formats: [onnx, torchscript, aotinductor]\n")
    told = "not in the release, which holds ONNX alone: torchscript, aotinductor"
    assert formats_left_out(recipes) == (told,)


def test_nothing_is_said_where_all_is_onnx(tmp_path):
    assert formats_left_out(recipes_of(tmp_path, "")) == ()


def test_without_onnx_there_is_nothing_to_release(tmp_path):
    with pytest.raises(UsageError) as caught:
        formats_left_out(recipes_of(tmp_path, "formats: [torchscript]\n"))
    assert "'x' has no onnx among its formats" in caught.value.what
    assert caught.value.where.endswith("file.yaml:6:11")
