import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxbuild.onnxkit.fp16.casts import FLOAT, FLOAT16, drop_cast_pairs
from onnxbuild.onnxkit.fp16.fp32_nodes import batch_transposes
from onnxbuild.onnxkit.model.canonical import canonicalize
from tests.onnxkit.models import model, value, weight
from tests.steps.graphs import run_model, save


def pair(source, target, between=None):
    """source (fp32) -> fp16 -> target (fp32)."""
    between = between or f"{target}_half"
    return [
        helper.make_node("Cast", [source], [between], f"down_{target}", to=FLOAT16),
        helper.make_node("Cast", [between], [target], f"up_{target}", to=FLOAT),
    ]


def typed(nodes, outputs, *names, inputs=("x",), more=()):
    """A model whose values `names` are fp32."""
    infos = [value(name, ["n"]) for name in names]
    return model(
        nodes, [*(value(name, ["n"]) for name in inputs), *more],
        [value(name, ["n"]) for name in outputs], value_info=infos,
    )  # fmt: skip


def tidied(made, tmp_path, feeds):
    """Operator types, sorted, and the outputs; the model is checked."""
    drop_cast_pairs(made)
    canonicalize(made)
    onnx.checker.check_model(made, full_check=True)
    return sorted(n.op_type for n in made.graph.node), run_model(save(made, tmp_path / "m"), feeds)


X = {"x": np.float32([1.0001, -2.0])}  # the first is not 1.0001 in fp16


def test_pairs_in_a_row_go_altogether(tmp_path):
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]), *pair("a", "b"), *pair("b", "c"),
        helper.make_node("Neg", ["c"], ["y"]),
    ]  # fmt: skip
    found, outputs = tidied(typed(nodes, ["y"], "a", "b", "c"), tmp_path, X)
    assert found == ["Neg", "Neg"]
    np.testing.assert_array_equal(outputs["y"], X["x"])


def test_an_output_that_is_an_input_or_another_output_keeps_its_name(tmp_path):
    nodes = [*pair("x", "z"), helper.make_node("Neg", ["x"], ["y"]), *pair("y", "again")]
    found, outputs = tidied(typed(nodes, ["y", "z", "again"]), tmp_path, X)
    assert found == ["Identity", "Identity", "Neg"]
    np.testing.assert_array_equal(outputs["z"], X["x"])
    np.testing.assert_array_equal(outputs["again"], -X["x"])


def test_a_branch_follows_the_value_that_becomes_an_output(tmp_path):
    arms = [
        helper.make_graph(
            [helper.make_node("Neg", [read], [f"out_{read}"])],
            read,
            [],
            [value(f"out_{read}", ["n"])],
        )
        for read in ("a", "b")
    ]
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]), *pair("a", "y"), *pair("a", "b"),
        helper.make_node("If", ["c"], ["z"], then_branch=arms[0], else_branch=arms[1]),
    ]  # fmt: skip
    made = typed(nodes, ["y", "z"], "a", "b", more=[value("c", [], TensorProto.BOOL)])
    found, _ = tidied(made, tmp_path, {**X, "c": np.array(True)})
    assert found == ["If", "Neg"]
    for chosen in (True, False):
        outputs = run_model(tmp_path / "m", {**X, "c": np.array(chosen)})
        np.testing.assert_array_equal(outputs["z"], X["x"])


def test_a_value_that_was_fp16_keeps_its_casts():
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        *pair("a", "b"),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    made = typed(nodes, ["y"])  # nobody says that `a` is fp32
    drop_cast_pairs(made)
    assert [node.op_type for node in made.graph.node] == ["Neg", "Cast", "Cast", "Neg"]


def product(order, other, *, first=True):
    """A product of a transposed input and a weight, or another input, of the shape `other`."""
    factors = ["turned", "w"] if first else ["w", "turned"]
    nodes = [
        onnx.helper.make_node("Transpose", ["x"], ["turned"], name="turn", perm=order),
        onnx.helper.make_node("MatMul", factors, ["y"], name="multiply"),
    ]
    inputs = [value("x", [4] * len(order))]
    weights = [weight("w", np.ones(other, np.float32))]
    return model(nodes, inputs, [value("y", [4] * len(order))], weights)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("order", [[1, 0, 2], [1, 2, 0], [1, 2, 0, 3], [1, 2, 3, 0]])
def test_a_batch_that_moves_inwards_before_a_matrix_is_found(order, first):
    assert batch_transposes(product(order, (4, 4), first=first)) == ("turn",)


@pytest.mark.parametrize("order", [[1, 0], [2, 1, 0, 3]])
def test_other_transposes_are_left_alone(order):
    assert batch_transposes(product(order, (4, 4))) == ()


def test_factors_of_one_rank_are_left_alone():
    assert batch_transposes(product([1, 0, 2], (4, 4, 4))) == ()
