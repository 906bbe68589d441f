import json

import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.onnxkit.gates import quantizable_nodes
from onnxbuild.onnxkit.model_files import load_model, save_model
from onnxbuild.steps.sensitivity import KIND, PLOT_FILE, SensitivityParams
from tests.fakes.step_context import run_step

USER = """
import numpy as np

def data():
    generator = np.random.default_rng(1)
    while True:
        yield {"x": generator.standard_normal((4, 16)).astype(np.float32)}

def nothing():
    return []
"""


def chain(folder):
    """Three MatMuls; the weight of the second holds one channel that dwarfs the others' scale."""
    generator = np.random.default_rng(0)
    weights = [generator.standard_normal((16, 16)).astype(np.float32) for _ in range(3)]
    weights[1][0] *= 100  # one row: symmetric scales by column lose all others
    names = ["x", "a", "b", "y"]
    nodes = [
        onnx.helper.make_node("MatMul", [names[n], f"w{n}"], [names[n + 1]], f"multiply_{n}")
        for n in range(3)
    ]
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes,
        "chain",
        [value("x", 1, ["batch", 16])],
        [value("y", 1, ["batch", 16])],
        [onnx.numpy_helper.from_array(w, f"w{n}") for n, w in enumerate(weights)],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 18)])
    model.ir_version = 10
    folder.mkdir(parents=True, exist_ok=True)
    save_model(model, folder)
    return folder


def measured(folder, model, data="data", samples=3):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "user.py").write_text(USER)
    params = SensitivityParams(
        data=Entrypoint(f"{folder}/user.py:{data}"),
        project=None,
        inputs=(DummyInput("x", "float32", ("batch", 16)),),
        samples=samples,
    )
    outcome, context = run_step(KIND, params, folder / "step", {"model": model})
    made = context.output("sensitivity")
    return outcome, json.loads((made / "report.json").read_text()), (made / PLOT_FILE).read_text()


def test_the_node_that_loses_most_comes_first(tmp_path):
    outcome, report, plot = measured(tmp_path, chain(tmp_path / "model"))
    assert next(each["name"] for each in report["nodes"]) == "multiply_1"
    assert outcome.metrics["most_sensitive"] == "multiply_1"
    assert {each["name"] for each in report["nodes"]} == {f"multiply_{n}" for n in range(3)}
    losses = [1 - each["cosine_mean"] for each in report["nodes"]]
    assert losses == sorted(losses, reverse=True)
    assert 1 - report["all"]["cosine_mean"] >= losses[0] * 0.5
    assert report["samples"] == 12
    assert plot.startswith("<svg")
    assert "multiply_1" in plot


def test_equal_inputs_give_equal_bytes(tmp_path):
    model = chain(tmp_path / "model")
    assert measured(tmp_path / "a", model)[1:] == measured(tmp_path / "b", model)[1:]


def test_it_tells_what_the_dynamic_quantizer_really_loses(tmp_path):
    from onnxbuild.onnxkit.sessions import open_session
    from onnxbuild.steps import quantize_dynamic

    model = chain(tmp_path / "model")
    _, report, _ = measured(tmp_path / "s", model, samples=8)
    options = quantize_dynamic.DynamicOptions(reduce_range=False)
    _, context = run_step(
        quantize_dynamic.KIND,
        quantize_dynamic.DynamicParams(options),
        tmp_path / "q",
        {"model": model},
    )
    exact, low = (open_session(each) for each in (model, context.output("model")))
    generator = np.random.default_rng(1)
    cosines = []
    for _ in range(8):
        x = generator.standard_normal((4, 16)).astype(np.float32)
        (a,), (b,) = exact.run(None, {"x": x}), low.run(None, {"x": x})
        cosines += list((a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1))
    assert 1 - report["all"]["cosine_mean"] == pytest.approx(1 - np.mean(cosines), rel=0.05)


def test_what_is_kept_is_what_was_measured(tmp_path):
    from onnxbuild.steps import quantize_dynamic

    model = chain(tmp_path / "model")
    measured(tmp_path / "s", model)
    options = quantize_dynamic.DynamicOptions(reduce_range=False, keep_most_sensitive=0.3)
    outcome, _ = run_step(
        quantize_dynamic.KIND,
        quantize_dynamic.DynamicParams(options),
        tmp_path / "q",
        {"model": model, "sensitivity": tmp_path / "s/step/out/sensitivity"},
    )
    assert outcome.metrics["kept_in_fp32"] == ["multiply_1"]
    assert outcome.metrics["quantized_nodes"] == 2


def test_a_model_without_weights_has_nothing_to_measure(tmp_path):
    model = load_model(chain(tmp_path / "model"))
    del model.graph.node[:]
    model.graph.node.append(onnx.helper.make_node("Relu", ["x"], ["y"], "relu"))
    del model.graph.initializer[:]
    assert quantizable_nodes(model) == []
    (tmp_path / "bare").mkdir()
    save_model(model, tmp_path / "bare")
    with pytest.raises(StepError, match="no MatMul, Gemm or Conv with constant weights"):
        measured(tmp_path / "s", tmp_path / "bare")


def test_no_data_is_an_error(tmp_path):
    with pytest.raises(StepError, match="yields nothing to compare on"):
        measured(tmp_path, chain(tmp_path / "model"), data="nothing")
