import json

import numpy as np
import onnx
import pytest
from onnx import helper

import onnxbuild
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.ready_onnx.adapt import name_axes
from onnxbuild.steps.import_onnx import KIND as IMPORT
from onnxbuild.steps.import_onnx import ImportOnnxParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear, model, value
from tests.steps.graphs import run_model
from tests.written_recipes import faults, loader

CODE = '''\
"""A model that is ONNX already."""

from pathlib import Path

import onnx


def load():
    return Path(__file__).with_name("mlp.onnx")


def loaded():
    return onnx.load(load())


def number():
    return 3


def evaluation():
    import numpy as np

    for seed in range(8):
        x = np.random.default_rng(seed).standard_normal((4, 16)).astype(np.float32)
        yield {"x": x}, x[:, 0] > 0


def accuracy(outputs, labels):
    import numpy as np

    found = np.concatenate([each["y"][:, 0] > each["y"][:, 1] for each in outputs])
    return float((found == np.concatenate(labels)).mean())
'''
RECIPE = """\
version: 1
name: mlp
frontend: onnx
model: {entrypoint: models/mlp.py:load, files: [models/mlp.onnx]}
dummy_inputs:
  x: {dtype: float32, shape: [batch, 16]}
outputs: [y]
dynamic_axes:
  batch: {min: 1, max: 8, example: 4}
evaluate: {data: models/mlp.py:evaluation, metric: models/mlp.py:accuracy}
quantization: {fp32: none, int8: dynamic}
benchmark: {max_time_s: 0.1, min_samples: 3}
"""
TEXT = """\
version: 1
name: demo
frontend: onnx
model: model.py:load
dummy_inputs: {x: {dtype: float32, shape: [batch, 4]}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
"""
AXES = (Axis("batch", 1, 8, 2),)
INPUTS = (DummyInput("x", "float32", ("batch", 4)),)


def mlp(rows="N"):
    """Two layers whose axis has another name than the recipe's."""
    random = np.random.default_rng(0)
    sizes = [(16, 64), (64, 2)]
    weights = [
        onnx.numpy_helper.from_array(random.standard_normal(size).astype(np.float32) / 4, f"w{n}")
        for n, size in enumerate(sizes)
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"], name="first"),
        helper.make_node("Relu", ["a"], ["b"], name="clip"),
        helper.make_node("MatMul", ["b", "w1"], ["y"], name="second"),
    ]
    return model(nodes, [value("x", [rows, 16])], [value("y", [rows, 2])], weights, opset=17)


def imported(folder, made, *, name="load", inputs=INPUTS, outputs=("y",)):
    (folder / "models").mkdir(parents=True)
    file = folder / "models/mlp.py"
    file.write_text(CODE)
    if made is not None:
        onnx.save(made, folder / "models/mlp.onnx")
    params = ImportOnnxParams(Entrypoint(f"{file}:{name}"), inputs, outputs, AXES)
    outcome, context = run_step(IMPORT, params, folder / "step")
    return outcome, context.output("model")


@pytest.mark.parametrize("name", ["load", "loaded"])
def test_a_path_and_a_model_give_the_same_canonical_file(tmp_path, name):
    made = linear()
    made.producer_name, made.doc_string = "elsewhere", "made on a Tuesday"
    outcome, folder = imported(tmp_path / name, made, name=name)
    found = onnx.load(folder / "model.onnx")
    assert (found.producer_name, found.doc_string) == ("onnxbuild", "")
    assert outcome.metrics["opset"] == 18
    _, again = imported(tmp_path / "again", made)
    assert (folder / "model.onnx").read_bytes() == (again / "model.onnx").read_bytes()
    feeds = {"x": np.ones((3, 4), np.float32)}
    assert run_model(folder, feeds)["y"].shape == (3, 3)


def test_weights_in_a_file_of_their_own_come_along(tmp_path):
    (tmp_path / "models").mkdir()
    made = mlp()
    expected = onnx.numpy_helper.to_array(made.graph.initializer[0])
    onnx.save(
        made, tmp_path / "models/mlp.onnx", save_as_external_data=True, size_threshold=0,
        location="mlp.data",
    )  # fmt: skip
    (tmp_path / "models/mlp.py").write_text(CODE)
    inputs = (DummyInput("x", "float32", ("batch", 16)),)
    for name in ("load", "loaded"):
        params = ImportOnnxParams(
            Entrypoint(f"{tmp_path}/models/mlp.py:{name}"), inputs, ("y",), AXES
        )
        _, context = run_step(IMPORT, params, tmp_path / name)
        found = onnx.load(context.output("model") / "model.onnx").graph.initializer[0]
        np.testing.assert_array_equal(onnx.numpy_helper.to_array(found), expected)


def test_dynamic_axes_get_the_recipes_names_wherever_they_stand():
    made = mlp(rows="N")
    name_axes(made, (DummyInput("x", "float32", ("batch", 16)),))
    shapes = [
        [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim]
        for each in (*made.graph.input, *made.graph.output)
    ]
    assert shapes == [["batch", 16], ["batch", 2]]


@pytest.mark.parametrize(
    ("inputs", "outputs", "what"),
    [
        ((DummyInput("z", "float32", ("batch", 4)),), ("y",), "takes an input 'x'"),
        (INPUTS, ("logits",), "no output 'logits'; it has y"),
    ],
)
def test_a_model_that_is_not_as_declared_is_refused(tmp_path, inputs, outputs, what):
    with pytest.raises(StepError, match=what):
        imported(tmp_path, linear(), inputs=inputs, outputs=outputs)


def test_what_is_no_onnx_model_is_refused(tmp_path):
    with pytest.raises(StepError, match="returned an int; expected the path") as caught:
        imported(tmp_path / "number", linear(), name="number")
    assert "frontend: pytorch" in caught.value.fix
    with pytest.raises(StepError, match="can't be read"):
        imported(tmp_path / "missing", None)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("formats: [onnx, torchscript]\n", "format 'torchscript' needs the frontend 'pytorch'"),
        ("opset: 18\n", "opset is written, and the model that a callable returns keeps its own"),
    ],
)
def test_what_needs_pytorch_is_refused_with_the_reason(tmp_path, text, what):
    ((found, where, fix),) = faults(loader(tmp_path, before=TEXT), text)
    assert what in found
    assert ":7:" in where
    assert fix.startswith("remove")


@pytest.mark.slow
@pytest.mark.usefixtures("warm_steps")
def test_a_recipe_builds_fp32_and_int8_from_it_and_scores_them(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "models/mlp.py").write_text(CODE)
    onnx.save(mlp(), tmp_path / "models/mlp.onnx")
    (tmp_path / "mlp.yaml").write_text(RECIPE)
    result = onnxbuild.build(onnxbuild.Request((tmp_path / "mlp.yaml",)))
    assert result.exit_code == 0
    out = tmp_path / "artifacts/out/mlp"
    manifests = {
        name: json.loads((out / name / "manifest.json").read_text()) for name in ("fp32", "int8")
    }
    assert manifests["fp32"]["inputs"][0]["shape"] == ["batch", 16]
    assert manifests["fp32"]["opsets"]["ai.onnx"] == 17
    for manifest in manifests.values():
        assert manifest["validation"]["cpu"]["passed"]
        assert manifest["evaluation"]["cpu"]["baseline_score"] is not None
    assert manifests["fp32"]["validation"]["cpu"]["metrics"]["max_abs"] < 1e-5
    assert manifests["int8"]["validation"]["cpu"]["metrics"]["max_abs"] > 0
    fp32, int8 = ((out / name / "model.onnx").stat().st_size for name in ("fp32", "int8"))
    assert int8 < fp32
    again = onnxbuild.build(onnxbuild.Request((tmp_path / "mlp.yaml",)))
    assert again.report.built == []
