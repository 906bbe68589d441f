import numpy as np
import pytest
from onnx.helper import make_graph, make_node

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.model.model_files import file_bytes
from onnxbuild.steps.optimize import KIND, OptimizeOptions, OptimizeParams
from onnxbuild.steps.quantize_dynamic import KIND as DYNAMIC
from onnxbuild.steps.quantize_dynamic import DynamicOptions, DynamicParams
from onnxbuild.steps.quantize_weights import KIND as WEIGHTS
from onnxbuild.steps.quantize_weights import WeightOptions, WeightParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import model, value, weight
from tests.steps.graphs import config, operators, run_model, save

ROWS, COLUMNS = 64, 96
INT8 = np.random.default_rng(0).integers(-127, 128, (ROWS, COLUMNS)).astype(np.int8)
ONES = np.ones((1, COLUMNS), np.float32)
GRID = np.array([ROWS, COLUMNS])
SCALE = weight("scale", np.float32(0.01))
SCALED = [make_node("Cast", ["w8"], ["wf"], to=1), make_node("Mul", ["wf", "scale"], ["w"])]


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as a child runs a step


def product(nodes, weights):
    """y = x @ w, where the nodes compute w."""
    multiply = make_node("MatMul", ["x", "w"], ["y"], name="multiply")
    ends = [value("x", ["batch", ROWS])], [value("y", ["batch", COLUMNS])]
    return model([*nodes, multiply], *ends, weights, opset=21)


CASES = {
    "8 bits by Cast and Mul": (SCALED, [weight("w8", INT8), SCALE]),
    "8 bits by DequantizeLinear": (
        [make_node("DequantizeLinear", ["w8", "scale"], ["w"])],
        [weight("w8", INT8), SCALE],
    ),
    "16 bits": ([make_node("Cast", ["h"], ["w"], to=1)], [weight("h", INT8.astype(np.float16))]),
    "Expand": ([make_node("Expand", ["scale", "grid"], ["w"])], [SCALE, weight("grid", GRID)]),
    "ConstantOfShape": ([make_node("ConstantOfShape", ["grid"], ["w"])], [weight("grid", GRID)]),
    "Tile": (
        [make_node("Tile", ["row", "n"], ["w"])],
        [weight("row", ONES), weight("n", np.array([ROWS, 1]))],
    ),
    "Pad": (
        [make_node("Pad", ["row", "n"], ["w"])],
        [weight("row", ONES), weight("n", np.array([ROWS - 1, 0, 0, 0]))],
    ),
    "OneHot": (
        [make_node("OneHot", ["i", "depth", "ends"], ["w"])],
        [weight("i", np.arange(ROWS)), weight("depth", np.array(COLUMNS)),
         weight("ends", np.array([0, 1], np.float32))],
    ),
    "Range": (
        [make_node("Range", ["a", "b", "scale"], ["r"]), make_node("Reshape", ["r", "grid"], ["w"])],
        [weight("a", np.float32(0)), weight("b", np.float32(ROWS * COLUMNS * 0.01)), SCALE,
         weight("grid", GRID)],
    ),
    "an outer product": (
        [make_node("Mul", ["row", "column"], ["w"])],
        [weight("row", ONES), weight("column", np.ones((ROWS, 1), np.float32))],
    ),
}  # fmt: skip


def optimized(given, folder, **options):
    source = save(given, folder / "source")
    inputs = (DummyInput("x", "float32", ("batch", ROWS)),)
    params = OptimizeParams(OptimizeOptions(**options), inputs, (Axis("batch", 1, 8, 2),))
    inputs_of_step = {"model": source, "config": config(folder / "config")}
    _, context = run_step(KIND, params, folder / "optimize", inputs_of_step)
    return source, context.output("model")


def computes_the_same(source, target):
    feeds = {"x": np.random.default_rng(1).normal(size=(3, ROWS)).astype(np.float32)}
    expected = run_model(source, feeds)["y"]
    np.testing.assert_allclose(run_model(target, feeds)["y"], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("level", ["basic", "extended"])
def test_no_constant_is_folded_that_is_larger_than_what_it_is_made_of(name, level, tmp_path):
    source, target = optimized(product(*CASES[name]), tmp_path, level=level, transformer=False)
    assert file_bytes(target) < file_bytes(source) + 200  # names of nodes
    computes_the_same(source, target)


def test_a_constant_that_is_no_larger_is_folded(tmp_path):
    turned = [make_node("Transpose", ["wt"], ["w"])]
    given = product(turned, [weight("wt", np.ones((COLUMNS, ROWS), np.float32))])
    _, target = optimized(given, tmp_path)
    assert operators(target) == {"MatMul": 1}


def test_what_the_rest_of_the_model_reads_stays_next_to_what_is_held(tmp_path):
    """`w8` is read by the held constant and by a node of the model; `wf` by two constants, one of them small."""
    small = [
        make_node("ReduceSum", ["wf"], ["total"], keepdims=0),
        make_node("Add", ["xw", "total"], ["sum"]),
        make_node("Gather", ["w8", "first"], ["row"]), make_node("Cast", ["row"], ["rf"], to=1),
        make_node("Mul", ["sum", "rf"], ["y"]),
    ]  # fmt: skip
    given = product(SCALED, [weight("w8", INT8), SCALE, weight("first", np.array(0))])
    given.graph.node[-1].output[0] = "xw"
    given.graph.node.extend(small)
    source, target = optimized(given, tmp_path)
    assert file_bytes(target) < file_bytes(source) + 300
    computes_the_same(source, target)


def test_constants_in_a_branch_are_held_too(tmp_path):
    ends = [value("y1", ["batch", COLUMNS])]
    then = make_graph(
        [*SCALED, make_node("MatMul", ["x", "w"], ["y1"])], "then", [], ends, [weight("w8", INT8)]
    )
    other = make_graph(
        [make_node("Cast", ["w8"], ["w"], to=1), make_node("MatMul", ["x", "w"], ["y1"])],
        "other", [], ends, [weight("w8", -INT8)],
    )  # fmt: skip
    nodes = [
        make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        make_node("Greater", ["s", "scale"], ["c"]),
        make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    given = model(
        nodes, [value("x", ["batch", ROWS])], [value("y", ["batch", COLUMNS])], [SCALE], opset=21
    )
    source, target = optimized(given, tmp_path)
    assert file_bytes(target) < file_bytes(source) + 500
    for sign in (1, -1):
        feeds = {"x": sign * np.ones((2, ROWS), np.float32)}
        expected = run_model(source, feeds)["y"]
        np.testing.assert_allclose(run_model(target, feeds)["y"], expected, rtol=1e-4)


def test_a_mask_of_a_fixed_shape_is_not_written_out(tmp_path):
    """Shape(x) is a constant where the input's shape is fixed."""
    nodes = [
        make_node("Shape", ["x"], ["shape"]),
        make_node("ConstantOfShape", ["shape"], ["zeros"]),
        make_node("Trilu", ["zeros"], ["mask"]),
        make_node("Add", ["x", "mask"], ["y"]),
    ]
    given = model(nodes, [value("x", [ROWS, ROWS])], [value("y", [ROWS, ROWS])])
    source = save(given, tmp_path / "source")
    inputs = {"model": source, "config": config(tmp_path / "config")}
    params = OptimizeParams(OptimizeOptions(), (DummyInput("x", "float32", (ROWS, ROWS)),), ())
    _, context = run_step(KIND, params, tmp_path / "step", inputs)
    assert file_bytes(context.output("model")) < 600


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        (DYNAMIC, DynamicParams(DynamicOptions(reduce_range=False))),
        (WEIGHTS, WeightParams(WeightOptions(block_size=32))),
    ],
)
def test_quantizers_take_weights_that_the_graph_computes(kind, params, tmp_path):
    source, target = optimized(product(*CASES["8 bits by Cast and Mul"]), tmp_path)
    outcome, context = run_step(kind, params, tmp_path / "quantize", {"model": target})
    assert outcome.metrics["quantized_nodes"] == 1
    assert not {"Cast", "MatMul"} <= operators(context.output("model")).keys()
    feeds = {"x": np.random.default_rng(1).normal(size=(3, ROWS)).astype(np.float32)}
    expected, found = (run_model(each, feeds)["y"] for each in (source, context.output("model")))
    assert np.corrcoef(expected.ravel(), found.ravel())[0, 1] > 0.99
