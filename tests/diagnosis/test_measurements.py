"""Measurements of a diagnosis: nodes by their loss; the error of the model itself, and of what ONNX Runtime makes of it."""

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxbuild.core.step import MODEL_FILE
from onnxbuild.core.target import CPU_TARGET
from onnxbuild.diagnosis.chain import Chain
from onnxbuild.diagnosis.measurements import Stage, by_loss, is_of_the_runtime
from onnxbuild.diagnosis.remedies import of_the_runtime
from onnxbuild.onnxkit.accuracy.comparison import Noise
from onnxbuild.onnxkit.accuracy.node_trace import StageError, stage_error
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.recipe.load import load_recipes
from tests.onnxkit import models


def test_groups_go_by_their_costliest_node_and_those_without_a_number_stay_behind_in_their_order():
    groups = (("late",), ("a", "relu"), ("b",), ("later",), ("c", "d"))
    losses = {"a": 0.1, "b": 0.3, "c": 0.2, "d": 0.4}
    assert by_loss(groups, losses, {}) == (
        ("c", "d"),
        ("b",),
        ("a", "relu"),
        ("late",),
        ("later",),
    )


def test_without_losses_the_order_stays():
    groups = (("b",), ("a",))
    assert by_loss(groups, {}, {"a": 1.0}) == groups


def test_what_the_table_does_not_tell_is_taken_from_the_effect_on_the_outputs_in_its_unit():
    groups = (("a",), ("embedding",), ("b",), ("none",), ("c",))
    losses = {"a": 0.1, "b": 0.3, "c": 0.02}
    effects = {"a": 0.2, "b": 0.7, "c": 0.03, "embedding": 0.5}
    assert by_loss(groups, losses, effects) == (("b",), ("embedding",), ("a",), ("c",), ("none",))


CHAIN = Chain("r", "fp32", (), (), "", "", CPU_TARGET)


def normalized():
    """A convolution and a batch norm, which ONNX Runtime folds into one."""
    random = np.random.default_rng(0)
    weights = [models.weight("w", random.standard_normal((8, 3, 3, 3)).astype(np.float32))]
    for name in "sbmv":
        array = random.uniform(0.1, 3, 8).astype(np.float32)
        weights.append(models.weight(name, array))
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "s", "b", "m", "v"], ["y"]),
    ]
    shapes = models.value("x", [1, 3, 9, 9]), models.value("y", [1, 8, 7, 7])
    return models.model(nodes, [shapes[0]], [shapes[1]], weights)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """(the model, the same with one wrong weight, what the first computes node by node)."""
    path = tmp_path_factory.mktemp("stages")
    right, wrong = normalized(), normalized()
    changed = onnx.numpy_helper.to_array(wrong.graph.initializer[0]).copy()
    changed[0, 0, 0, 0] += 0.01
    wrong.graph.initializer[0].raw_data = changed.tobytes()
    for name, each in {"right": right, "wrong": wrong}.items():
        (path / name).mkdir()
        onnx.save(each, path / name / MODEL_FILE)
    x = np.random.default_rng(1).standard_normal((1, 3, 9, 9)).astype(np.float32)
    (y,) = open_session(path / "right", optimize=False).run(None, {"x": x})
    (path / "reference").mkdir()
    writer = ReferenceWriter(path / "reference")
    writer.add(ReferencePoint("example", {}, {"x": x}, {"y": y}))
    writer.finish()
    return path


@pytest.mark.parametrize(("model", "expected"), [("right", True), ("wrong", False)])
def test_an_error_that_a_model_has_only_as_it_is_optimized_is_the_runtimes(
    folders, model, expected
):
    reference = folders / "reference"
    error = stage_error(None, folders / model, reference)
    assert error.ratio > 0.0
    total = Stage("r:import", "", "reference", error, 1.0)
    assert is_of_the_runtime(CHAIN, folders / model, reference, total) is expected


def error_of(ratio, max_abs):
    return StageError({"y": Noise(noise=ratio, signal=1.0, max_abs=max_abs)})


@pytest.fixture
def recipe(tmp_path):
    (tmp_path / "m.py").write_text("def load(): ...\n")
    text = (
        "version: 1\nname: x\nmodel: m.py:load\ndummy_inputs: {x: {dtype: float32, shape: [4]}}\n"
    )
    (tmp_path / "x.yaml").write_text(text)

    def load(more=""):
        (tmp_path / "x.yaml").write_text(text + more)
        return load_recipes(tmp_path / "x.yaml", project=tmp_path).recipes[0]

    return load


@pytest.mark.parametrize(("max_abs", "atol"), [(8.74e-5, 9e-5), (1.2e-3, 2e-3)])
def test_rounding_is_allowed_by_a_tolerance_that_it_is_within(recipe, max_abs, atol):
    lines = of_the_runtime(recipe().variants[0], error_of(1e-11, max_abs))
    pasted = [line for line in lines if line.startswith(("validate", "session"))]
    mended = recipe("".join(f"{line}\n" for line in pasted))
    assert mended.sections["session"].graph_optimization == "disable"
    assert mended.sections["validate"].fp32.atol == atol


def test_more_than_rounding_is_not_allowed(recipe):
    lines = of_the_runtime(recipe().variants[0], error_of(1e-3, 0.5))
    assert not any("atol" in line for line in lines)
    assert lines[-1] == "session: {graph_optimization: disable}"
