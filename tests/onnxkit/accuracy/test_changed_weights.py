import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxbuild.onnxkit.accuracy.node_trace import changed_nodes, edited_weights, retyped_weights
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from tests.onnxkit.models import model, value, weight

TABLE = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def made(folder, *, table=TABLE, bias=0.0, cast=False, op="Tanh", external="auto"):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="multiply"),
        helper.make_node("Add", ["a", "b"], ["c"], name="add"),
        helper.make_node(op, ["c"], ["y"], name="last"),
    ]
    weights = [weight("w", table), weight("b", np.full(4, bias, np.float32))]
    if cast:
        weights[0].name = "w_half"
        nodes.insert(
            0, helper.make_node("Cast", ["w_half"], ["w"], name="cast", to=TensorProto.FLOAT)
        )
    io = [value("x", ["n", 4])], [value("y", ["n", 4])]
    save_model(model(nodes, *io, weights), folder, external=external)
    return folder


@pytest.mark.parametrize("external", ["auto", "always"])
def test_a_weight_with_one_other_element_is_edited(tmp_path, external):
    one, same, other = (tmp_path / name for name in ("one", "same", "other"))
    table = TABLE.copy()
    table[3, 3] += 1e-6
    made(one, external=external)
    made(same, external="always")
    made(other, table=table, external=external)
    assert edited_weights(one, same) == set()
    assert edited_weights(one, other) == {"w"}
    assert changed_nodes(one, same) == set()
    assert changed_nodes(one, other) == {"multiply"}


def test_a_weight_of_another_type_or_that_a_node_makes_is_retyped(tmp_path):
    before = made(tmp_path / "before")
    for name, options in (("half", {"table": TABLE.astype(np.float16)}), ("cast", {"cast": True})):
        after = made(tmp_path / name, **options)
        assert retyped_weights(load_model(before), load_model(after)) == {"w"}
        assert changed_nodes(before, after) == {"multiply"}


def test_a_corrected_bias_is_no_change_where_other_nodes_are_changed(tmp_path):
    before = made(tmp_path / "before")
    after = made(tmp_path / "after", bias=0.5, op="Sigmoid")
    assert edited_weights(before, after) == {"b"}
    assert changed_nodes(before, after) == {"last"}
