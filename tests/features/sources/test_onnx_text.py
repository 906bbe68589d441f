"""`model: {onnx_text: FILE}`: both forms say what the .onnx file of the same model says, and are built."""

import json

import onnx
import pytest

import onnxbuild
from onnxbuild.core.recipe import Axis, DummyInput
from tests.onnxkit.models import branching, contrib, linear, value
from tests.written_recipes import faults, loader

HEAD = "version: 1\nname: demo\nmodel: {KEY: m.SUFFIX}\n"


def recipe_of(folder, key, suffix, made, more=""):
    onnx.save(made, folder / f"m.{suffix}")
    (recipe,) = loader(folder)(HEAD.replace("KEY", key).replace("SUFFIX", suffix) + more).recipes
    return recipe


@pytest.mark.parametrize("suffix", ["onnxtxt", "onnxjson"])
@pytest.mark.parametrize("made", [linear(), contrib(), branching(), linear(opset=19)])
def test_it_says_what_the_same_model_in_binary_says(tmp_path, made, suffix):
    text = recipe_of(tmp_path, "onnx_text", suffix, made)
    plain = recipe_of(tmp_path, "onnx", "onnx", made)
    assert text.model.files == (f"m.{suffix}",)
    for key in ("frontend", "inputs", "outputs", "axes", "opset"):
        assert getattr(text, key) == getattr(plain, key)
    assert text.model.args == plain.model.args


def test_inputs_that_have_values_are_none_and_names_may_be_others(tmp_path):
    made = linear()
    made.graph.input.append(value("w", [4, 2]))
    more = "dummy_inputs: {image: {shape: [rows, 4]}}\n"
    for suffix in ("onnxtxt", "onnxjson"):
        (tmp_path / suffix).mkdir()
        text = "version: 1\nname: demo\nmodel: {onnx_text: m.SUFFIX, rename: {x: image}}\n"
        onnx.save(made, tmp_path / suffix / f"m.{suffix}")
        (recipe,) = loader(tmp_path / suffix)(text.replace("SUFFIX", suffix) + more).recipes
        assert recipe.inputs == (DummyInput("image", "float32", ("rows", 4)),)
        assert recipe.axes == (Axis("rows", min=1, max=8, example=2),)


@pytest.mark.parametrize(
    "content", ["", "{}", "<ir_version: 8>", "agraph (" + "a" * 200_000 + "["]
)
@pytest.mark.parametrize("suffix", ["onnxtxt", "onnxjson"])
def test_what_is_no_model_is_refused_at_once(tmp_path, suffix, content):
    (tmp_path / f"m.{suffix}").write_text(content)
    head = HEAD.replace("KEY", "onnx_text").replace("SUFFIX", suffix)
    ((what, _, fix),) = faults(loader(tmp_path), head)
    assert what == f"m.{suffix} can't be read: it is no model in ONNX's text form or in JSON"
    assert "onnx.save" in fix


@pytest.mark.slow
@pytest.mark.smoke
@pytest.mark.usefixtures("warm_steps")
def test_it_is_built_and_held_against_itself(tmp_path):
    onnx.save(linear(), tmp_path / "m.onnxtxt")
    (tmp_path / "pyproject.toml").write_text("")
    head = HEAD.replace("KEY", "onnx_text").replace("SUFFIX", "onnxtxt")
    text = "benchmark: {max_time_s: 0.1, min_samples: 3}\nquantization: {fp32: none}\n"
    (tmp_path / "demo.yaml").write_text(head + text)
    result = onnxbuild.build(onnxbuild.Request((tmp_path / "demo.yaml",)))
    assert result.exit_code == 0, result.report.failures
    manifest = json.loads((tmp_path / "artifacts/out/demo/fp32/manifest.json").read_text())
    assert manifest["validation"]["cpu"]["passed"]
