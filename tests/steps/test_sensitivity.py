import json

import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.steps.sensitivity import KIND, PLOT_FILE, SensitivityParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import model, value, weight
from tests.steps.graphs import open_exact, save

USER = """
import numpy as np

def data():
    generator = np.random.default_rng(1)
    while True:
        yield {"x": generator.standard_normal((4, 16)).astype(np.float32)}

def nothing():
    return []

def labelled():
    for item, _ in zip(data(), range(6)):
        yield item, item["x"][:, 0] > 0

def words():
    generator = np.random.default_rng(1)
    while True:
        yield {"ids": generator.integers(0, 40, (2, 5))}

def nearness(outputs, labels):
    # looks at one output alone: how near zero its mean is
    return -abs(float(np.mean([each["y"][:, 3].mean() for each in outputs])))

def nan(outputs, labels):
    return float("nan")

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


FLOATS = DummyInput("x", "float32", ("batch", 16))


def measured(
    folder, model, data="data", *, samples=3, metric=None, project=None, fed=FLOATS, **options
):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "user.py").write_text(USER)
    params = SensitivityParams(
        data=Entrypoint(f"{folder}/user.py:{data}"),
        project=Entrypoint(f"{folder}/user.py:{project}") if project else None,
        inputs=(fed,),
        axes=(),
        samples=samples,
        metric=Entrypoint(f"{folder}/user.py:{metric}") if metric else None,
        **options,
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


def test_it_says_what_the_dynamic_quantizer_really_loses(tmp_path):
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
    exact, low = (open_exact(each) for each in (model, context.output("model")))
    generator = np.random.default_rng(1)
    cosines = []
    for _ in range(8):
        x = generator.standard_normal((4, 16)).astype(np.float32)
        (a,), (b,) = exact.run(None, {"x": x}), low.run(None, {"x": x})
        cosines += list((a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1))
    assert 1 - report["all"]["cosine_mean"] == pytest.approx(1 - np.mean(cosines), rel=0.05)


def embedding(folder):
    """Words looked up in a lopsided table, and a MatMul and a Conv whose channels differ in size."""
    random = np.random.default_rng(2)
    node, shape = onnx.helper.make_node, ["n", 16, 5]
    table = random.standard_normal((40, 16)).astype(np.float32)
    table[7, 3] = 30  # one value sets the scale of all
    kernel = random.standard_normal((16, 16, 3)) * np.geomspace(1, 40, 16)[:, None, None]
    nodes = [
        node("Gather", ["table", "ids"], ["a"], "look_up"),
        node("Add", ["a", "shift"], ["b"], "shift"),  # or the product would take the table's scale
        node("MatMul", ["b", "matrix"], ["c"], "multiply"),
        node("Transpose", ["c"], ["d"], "turn", perm=[0, 2, 1]),
        node("Conv", ["d", "kernel"], ["y"], "slide", pads=[1, 1]),
    ]
    held = {
        "table": table,
        "shift": random.standard_normal(16).astype(np.float32),
        "matrix": random.standard_normal((16, 16)).astype(np.float32),
        "kernel": kernel.astype(np.float32),
    }
    made = model(
        nodes,
        [value("ids", ["n", 5], onnx.TensorProto.INT64)],
        [value("y", shape)],
        [weight(name, array) for name, array in held.items()],
    )
    return save(made, folder)


@pytest.fixture(scope="module")
def looked_up(tmp_path_factory):
    """A folder with the model, and its report."""
    folder = tmp_path_factory.mktemp("embedding")
    fed = DummyInput("ids", "int64", ("n", 5), low=0, high=40)
    source = embedding(folder / "model")
    _, report, _ = measured(folder / "s", source, data="words", samples=8, fed=fed)
    return source, report


@pytest.mark.parametrize("name", ["look_up", "multiply", "slide"])
def test_a_node_alone_loses_what_it_loses_in_the_dynamic_quantizer(looked_up, tmp_path, name):
    from onnxbuild.steps import quantize_dynamic

    source, report = looked_up
    options = quantize_dynamic.DynamicOptions(reduce_range=False, nodes_to_include=(name,))
    params = quantize_dynamic.DynamicParams(options)
    _, context = run_step(quantize_dynamic.KIND, params, tmp_path, {"model": source})
    exact, low = (open_exact(each) for each in (source, context.output("model")))
    random = np.random.default_rng(1)
    cosines = []
    for _ in range(8):
        ids = random.integers(0, 40, (2, 5))
        (a,), (b,) = exact.run(None, {"ids": ids}), low.run(None, {"ids": ids})
        a, b = (each.reshape(2, -1).astype(np.float64) for each in (a, b))
        cosines += list((a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1))
    (reported,) = (each for each in report["nodes"] if each["name"] == name)
    assert loss(reported) == pytest.approx(1 - np.mean(cosines), rel=0.02)


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


def deep(folder, layers=6, bad=4):
    """Two MatMuls a layer, named by modules; the weights of layer `bad` lose the most."""
    generator = np.random.default_rng(3)
    nodes, weights, source = [], [], "x"
    for number in range(2 * layers):
        layer, part = divmod(number, 2)
        weight = generator.standard_normal((16, 16)).astype(np.float32) / 4
        if layer == bad:
            weight[0] *= 60 - 30 * part
        target = "y" if number == 2 * layers - 1 else f"v{number}"
        name = f"h.{layer}.part{part}"
        weights.append(onnx.numpy_helper.from_array(weight, f"{name}.weight"))
        nodes.append(onnx.helper.make_node("MatMul", [source, weights[-1].name], [target], name))
        source = target
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        nodes, "deep", [value("x", 1, ["batch", 16])], [value("y", 1, ["batch", 16])], weights
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10
    )
    folder.mkdir(parents=True, exist_ok=True)
    save_model(model, folder)
    return folder


def loss(found):
    return 1 - found["cosine_mean"]


def test_the_block_that_loses_most_comes_first_and_loses_what_its_nodes_do(tmp_path):
    _, report, plot = measured(tmp_path, deep(tmp_path / "model"))
    worst, *others = report["blocks"]
    assert worst["name"] == "h.4"
    assert {each["name"] for each in others} == {f"h.{n}" for n in (0, 1, 2, 3, 5)}
    assert [loss(each) for each in report["blocks"]] == sorted(
        map(loss, report["blocks"]), reverse=True
    )
    inside = {each["name"]: loss(each) for each in report["nodes"] if each["block"] == "h.4"}
    assert set(inside) == {"h.4.part0", "h.4.part1"}
    assert loss(worst) >= 0.8 * max(inside.values())
    assert loss(report["all"]) >= 0.8 * loss(worst)
    assert "[block] h.4" in plot
    assert report["runs"] == 3 * (1 + 1 + 6 + 12)


def test_the_metric_ranks_nodes_by_its_own_drop(tmp_path):
    model = chain(tmp_path / "model")
    outcome, report, _ = measured(tmp_path, model, data="labelled", metric="nearness")
    assert report["ranked_by"].endswith("user.py:nearness")
    drops = [each["drop"] for each in report["nodes"]]
    assert drops == sorted(drops, reverse=True)
    for each in report["nodes"]:
        assert each["score"] == pytest.approx(report["score"] - each["drop"])
    assert report["samples"] == 12
    assert any("drop of" in note for note in outcome.notes)


@pytest.mark.parametrize(
    ("data", "metric", "reported"),
    [
        ("labelled", "nan", "nan returned nan; expected a finite number"),
        ("nothing", "nearness", "nothing yields nothing to compare on"),
    ],
)
def test_a_metric_that_says_nothing_is_an_error(tmp_path, data, metric, reported):
    with pytest.raises(StepError, match=reported) as caught:
        measured(tmp_path, chain(tmp_path / "model"), data=data, metric=metric)
    assert caught.value.fix
