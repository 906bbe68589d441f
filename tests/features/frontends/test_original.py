"""`reference: {model: ...}`: a ready ONNX file is held against what it was made of."""

import json

import numpy as np
import onnx
import pytest

import onnxbuild
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.data.reference_feeds import ReferenceOptions
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.steps.reference import ORIGINAL, OriginalReferenceParams
from tests.fakes.step_context import run_step
from tests.features.frontends.test_onnx import mlp
from tests.onnxkit.models import model, value

CODE = '''\
"""What mlp.onnx was made of."""

import numpy as np

W = [np.random.default_rng(0)]
W = [W[0].standard_normal(size).astype(np.float32) / 4 for size in ((16, 64), (64, 2))]


def module():
    import torch

    class Net(torch.nn.Module):
        def forward(self, x):
            hidden = torch.relu(x @ torch.from_numpy(W[0]))
            return hidden @ torch.from_numpy(W[1])

    return Net()


def function():
    def predict(x):
        return {"hidden": None, "y": np.maximum(x.astype(np.float64) @ W[0], 0) @ W[1]}

    return predict


def pair():
    return lambda x: (x @ W[0], x @ W[0])


def scripted():
    import warnings

    import torch

    with warnings.catch_warnings(action="ignore"):
        return torch.jit.trace(module(), torch.zeros(2, 16))


def failing():
    def predict(x):
        return x.no_such_thing

    return predict


def words():
    return lambda x: "words"


def nothing():
    return lambda x: x[:, :2] * np.nan


def evaluation():
    for seed in range(8):
        x = np.random.default_rng(seed).standard_normal((4, 16)).astype(np.float32)
        y = np.maximum(x @ W[0], 0) @ W[1]
        yield {"x": x}, y[:, 0] > y[:, 1]


def accuracy(outputs, labels):
    found = np.concatenate([each["y"][:, 0] > each["y"][:, 1] for each in outputs])
    return float((found == np.concatenate(labels)).mean())
'''
RECIPE = """\
version: 1
name: mlp
model: {onnx: mlp.onnx}
benchmark: {max_time_s: 0.1, min_samples: 3}
"""
INPUTS = (DummyInput("x", "float32", ("batch", 16)),)
AXES = (Axis("batch", 1, 8, 2),)


def reference(folder, name):
    (folder / "mlp.py").write_text(CODE)
    (folder / "model").mkdir()
    save_model(mlp("batch"), folder / "model")
    original = Entrypoint(f"{folder / 'mlp.py'}:{name}")
    options = ReferenceOptions(points=({"batch": 5},))
    params = OriginalReferenceParams(original, INPUTS, AXES, None, options)
    outcome, context = run_step(
        ORIGINAL, params, folder / "step", inputs={"model": folder / "model"}
    )
    return outcome, list(read_reference(context.output("reference")))


def project(folder, *, wrong=False):
    (folder / "pyproject.toml").write_text("")
    (folder / "mlp.py").write_text(CODE)
    made = mlp()
    if wrong:
        weight = onnx.numpy_helper.to_array(made.graph.initializer[1]).copy()
        weight[3, 1] += 0.5
        made.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(weight, "w1"))
    onnx.save(made, folder / "mlp.onnx")


def build(folder, text, **settings):
    (folder / "demo.yaml").write_text(RECIPE + text)
    return onnxbuild.build(onnxbuild.Request((folder / "demo.yaml",), **settings))


@pytest.mark.parametrize("name", ["module", "scripted", "function"])
def test_modules_and_functions_give_the_models_outputs(tmp_path, name):
    outcome, points = reference(tmp_path, name)
    assert outcome.metrics["points"] == len(points) > 2
    for point in points:
        assert list(point.outputs) == ["y"]
        assert point.outputs["y"].dtype == np.float32
        assert point.outputs["y"].shape == (point.sizes["batch"], 2)
    noted = "output 'y' is float64 there, and was compared in the model's type"
    assert outcome.notes == ((noted,) if name == "function" else ())


@pytest.mark.parametrize(
    ("name", "what", "fix"),
    [
        ("pair", "names 1 (y) but the function returns 2 arrays", "name 2"),
        ("failing", "fails at point", "the reference's own code"),
        ("nothing", "holds 4 NaN among 4", "mend the model"),
    ],
)  # fmt: skip
def test_what_gives_no_reference_is_one_error(tmp_path, name, what, fix):
    with pytest.raises(StepError) as caught:
        reference(tmp_path, name)
    assert what in caught.value.what
    assert fix in caught.value.fix


@pytest.mark.slow
@pytest.mark.usefixtures("warm_steps")
def test_a_planted_wrong_weight_is_found_only_against_the_original(tmp_path):
    project(tmp_path, wrong=True)
    assert build(tmp_path, "").exit_code == 0, "held against itself nothing is wrong"
    for name in ("module", "function"):
        result = build(tmp_path, f"reference: {{model: mlp.py:{name}}}\n")
        assert result.exit_code != 0
        (failure,) = result.report.failures
        assert "output 'y'" in str(failure.error), failure
    project(tmp_path)
    result = build(tmp_path, "reference: {model: mlp.py:module}\n")
    assert result.exit_code == 0, result.report.failures
    assert build(tmp_path, "reference: {model: mlp.py:module}\n").report.built == []


@pytest.mark.slow
@pytest.mark.usefixtures("warm_steps")
def test_the_score_is_that_of_the_original_and_an_edit_of_it_counts(tmp_path):
    project(tmp_path, wrong=True)
    text = (
        "reference: {model: mlp.py:function}\nevaluate: {data: mlp.py:evaluation, metric: mlp.py:accuracy}\n"
        "validate: {fp32: {atol: 100.0, equal_min: 0.0}, int8: {cosine_min: 0.0, equal_min: 0.0, atol: 100.0}}\nquantization: {fp32: none, int8: dynamic}\n"
    )
    result = build(tmp_path, text)
    out = tmp_path / "artifacts/out/mlp"
    assert result.exit_code == 0, result.report.failures
    report = json.loads((out / "fp32/manifest.json").read_text())
    assert report["evaluation"]["cpu"]["baseline_score"] == 1.0
    file = tmp_path / "mlp.py"
    file.write_text(CODE.replace("/ 4 for", "/ 5 for"))
    built = build(tmp_path, text).report.built
    assert {"mlp:reference", "mlp:evaluate"} <= {str(each) for each in built}


PAIRED = """\
import numpy as np


def pair():
    return lambda x: (x * 2, -x)


def data():
    for seed in range(4):
        x = np.random.default_rng(seed).standard_normal((4, 3)).astype(np.float32)
        yield {"x": x}, x[:, 0] > 0


def accuracy(outputs, labels):
    found = np.concatenate([each["b"][:, 0] < 0 for each in outputs])
    return float((found == np.concatenate(labels)).mean())
"""


@pytest.mark.slow
@pytest.mark.usefixtures("warm_steps")
def test_places_in_a_tuple_are_those_of_the_file_whatever_the_recipe_chooses(tmp_path):
    name = "pair"
    outputs = "[b, a]"
    nodes = [
        onnx.helper.make_node("Add", ["x", "x"], ["a"]),
        onnx.helper.make_node("Neg", ["x"], ["b"]),
    ]
    shape = ["batch", 3]
    onnx.save(
        model(nodes, [value("x", shape)], [value("a", shape), value("b", shape)]),
        tmp_path / "mlp.onnx",
    )
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "pair.py").write_text(PAIRED)
    text = (
        f"outputs: {outputs}\nreference: {{model: pair.py:{name}}}\n"
        "evaluate: {data: pair.py:data, metric: pair.py:accuracy, max_drop: 0}\n"
    )
    result = build(tmp_path, text)
    assert result.exit_code == 0, result.report.failures
    report = json.loads((tmp_path / "artifacts/out/mlp/fp32/manifest.json").read_text())
    assert report["evaluation"]["cpu"]["baseline_score"] == 1.0
