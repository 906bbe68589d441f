"""Models with If, Loop, Scan and functions through every quantizer."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxbuild.onnxkit.model.graphs import all_nodes
from tests.onnxkit.models import model, value, weight
from tests.steps.quantizers import LEAST, WAYS, Case, combinations, gptq, half

WIDTH = 32
INT, BOOL = TensorProto.INT64, TensorProto.BOOL


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as a child runs a step


def random(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32) / 3


def node(*args, **options):
    return helper.make_node(*args, **options)


def matrix(name, seed=0):
    return weight(name, random(WIDTH, WIDTH, seed=seed))


def feeds(**more):
    return [{"x": random(6, WIDTH, seed=n), **{k: np.array(v[n % len(v)]) for k, v in more.items()}}
            for n in range(4)]  # fmt: skip


def siblings(*, last=True):
    """Two branches, each with a weight `w` and a value `h` of its own; a product behind them."""
    arms = [
        helper.make_graph(
            [node("Gemm", ["x", "w", "b"], ["h"], f"{name}_first", transB=1),
             node("MatMul", ["h", "w"], [f"y_{name}"], f"{name}_second")],
            name, [], [value(f"y_{name}", ["n", WIDTH])], [matrix("w", seed)],
        )
        for seed, name in enumerate(("then", "else"))
    ]  # fmt: skip
    output = "z" if last else "y"
    nodes = [node("If", ["first"], [output], "if", then_branch=arms[0], else_branch=arms[1])]
    if last:
        nodes.append(node("MatMul", ["z", "v"], ["y"], "last"))
    inputs = [value("first", [], BOOL), value("x", ["n", WIDTH])]
    weights = [weight("b", random(WIDTH)), matrix("v", 2)]
    made = model(nodes, inputs, [value("y", ["n", WIDTH])], weights)
    return made, feeds(first=[True, False])


def captured():
    """Branches read a table's row and what a Relu reads; nothing else reads either."""
    arms = [
        helper.make_graph(nodes, name, [], [value(f"y_{name}", ["n", WIDTH])])
        for name, nodes in (
            ("then", [node("MatMul", ["row", "w"], ["m"]), node("Add", ["m", "pre"], ["y_then"])]),
            ("else", [node("Neg", ["pre"], ["y_else"])]),
        )
    ]
    nodes = [
        node("Gather", ["w", "zero"], ["row"], "look_up"),
        node("Gemm", ["x", "w", "b"], ["pre"], "multiply", transB=1),
        node("Relu", ["pre"], ["h"], "clip"),
        node("If", ["first"], ["z"], "if", then_branch=arms[0], else_branch=arms[1]),
        node("Add", ["h", "z"], ["y"], "add"),
    ]
    inputs = [value("first", [], BOOL), value("x", ["n", WIDTH])]
    weights = [matrix("w"), weight("b", random(WIDTH)), weight("zero", np.array([0]))]
    made = model(nodes, inputs, [value("y", ["n", WIDTH])], weights)
    return made, feeds(first=[True, False])


def loop():
    """The weight before, in and behind a Loop; transposed but for the last."""
    body = helper.make_graph(
        [node("Gemm", ["s", "w", "b"], ["wide"], "inner", transB=1),
         node("Tanh", ["wide"], ["s_next"], "tanh"), node("Identity", ["go"], ["go_on"], "go")],
        "body", [value("i", [], INT), value("go", [], BOOL), value("s", ["n", WIDTH])],
        [value("go_on", [], BOOL), value("s_next", ["n", WIDTH])],
    )  # fmt: skip
    nodes = [
        node("Gemm", ["x", "w", "b"], ["h"], "first", transB=1),
        node("Loop", ["trips", "", "h"], ["z"], "loop", body=body),
        node("MatMul", ["z", "w"], ["y"], "last"),
    ]
    weights = [matrix("w"), weight("b", random(WIDTH)), weight("trips", np.array(2))]
    made = model(nodes, [value("x", ["n", WIDTH])], [value("y", ["n", WIDTH])], weights)
    return made, feeds()


def scan():
    """A recurrence over the rows."""
    body = helper.make_graph(
        [node("Add", ["s", "row"], ["sum"]), node("Unsqueeze", ["sum", "axis"], ["rows"]),
         node("Gemm", ["rows", "w", "b"], ["wide"], "inner", transB=1),
         node("Squeeze", ["wide", "axis"], ["flat"]), node("Tanh", ["flat"], ["s_next"]),
         node("Identity", ["s_next"], ["out"])],
        "body", [value("s", [WIDTH]), value("row", [WIDTH])],
        [value("s_next", [WIDTH]), value("out", [WIDTH])], [weight("axis", np.array([0]))],
    )  # fmt: skip
    nodes = [
        node("MatMul", ["x", "w"], ["h"], "first"),
        node("Scan", ["start", "h"], ["end", "y"], "scan", body=body, num_scan_inputs=1),
    ]
    weights = [matrix("w"), weight("b", random(WIDTH)),
               weight("start", np.zeros(WIDTH, np.float32))]  # fmt: skip
    made = model(nodes, [value("x", [6, WIDTH])], [value("y", [6, WIDTH])], weights)
    return made, feeds()


def function():
    """A function of the model's own, whose names are those of the main graph."""
    body = [node("MatMul", ["h", "w"], ["y"]), node("Tanh", ["y"], ["out"])]
    made = model(
        [node("Gemm", ["x", "w", "b"], ["h"], "first", transB=1),
         node("Block", ["h", "v"], ["z"], "block", domain="mine"),
         node("MatMul", ["z", "w"], ["y"], "last")],
        [value("x", ["n", WIDTH])], [value("y", ["n", WIDTH])],
        [matrix("w"), matrix("v", 1), weight("b", random(WIDTH))],
        imports=[helper.make_opsetid("", 18), helper.make_opsetid("mine", 1)],
    )  # fmt: skip
    imports = [helper.make_opsetid("", 18)]
    made.functions.append(
        helper.make_function("mine", "Block", ["h", "w"], ["out"], body, imports)
    )
    return made, feeds()


CASES = {
    "siblings": siblings, "captured": captured, "loop": loop, "scan": scan, "function": function,
}  # fmt: skip


@pytest.mark.parametrize(("name", "way"), combinations(CASES))
def test_nested_graphs_compute_what_they_did(tmp_path, name, way):
    case = Case(tmp_path, *CASES[name]())
    least = 0.9 if way in {"4-bit weights", "GPTQ"} else LEAST[way]  # four samples are few
    assert case.cosine(WAYS[way](case)) > least


@pytest.mark.parametrize(
    ("name", "block"),
    [("siblings", "MatMul"), ("captured", "If"), ("loop", "Loop"), ("scan", "Add")],
)  # fmt: skip
def test_nodes_stay_in_fp32_where_the_recipe_says_so_in_branches_too(tmp_path, name, block):
    case = Case(tmp_path, *CASES[name]())
    target = half(case, op_block_list=(block,))
    assert case.cosine(target) > LEAST["fp16"]
    kept = [each for each in all_nodes(onnx.load(target / "model.onnx")) if each.op_type == "Cast"]
    assert kept  # between them and what became fp16


def test_gptq_rounds_matrices_that_are_all_in_branches(tmp_path):
    case = Case(tmp_path, *siblings(last=False))
    assert case.cosine(gptq(case, bits=8)) > 0.999
    entry, inputs, axes = case.data()
    from onnxbuild.onnxkit.data.calibration_data import DataParams
    from onnxbuild.steps import hessians
    from tests.fakes.step_context import run_step

    params = DataParams(entry, inputs, axes, 10, 0)
    outcome, _ = run_step(hessians.KIND, params, tmp_path / "again", {"model": case.source})
    assert outcome.metrics["values"] == 1  # x, which both branches multiply first
    assert any(
        note.startswith("2 of 4 matrices multiply a value that is computed inside an If")
        for note in outcome.notes
    )
