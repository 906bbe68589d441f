import pytest
from onnx import TensorProto, helper

from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.model.interface import interface_faults, unused_inputs
from tests.onnxkit.models import linear, model, value

X = DummyInput("x", "float32", ("batch", 4))


def faults(made, inputs=(X,), outputs=("y",), opset=18):
    return [
        f"{each.where}: {each.what}" for each in interface_faults(made, inputs, outputs, opset)
    ]


def test_a_graph_as_declared_has_no_fault():
    assert faults(linear()) == []
    assert faults(linear(), outputs=(), opset=None) == []


@pytest.mark.parametrize(
    ("inputs", "outputs", "opset", "said"),
    [
        ((X,), ("y",), 17, "opset: the graph has opset 18; expected 17"),
        ((), ("y",), 18, "input 'x': the graph takes an input 'x' that `dummy_inputs` does not"),
        ((DummyInput("x", "int64", ("batch", 4)),), ("y",), 18, "dtype is float32; expected int64"),
        ((DummyInput("x", "float32", ("batch",)),), ("y",), 18, "its rank is 2; expected 1"),
        ((DummyInput("x", "float32", ("rows", 4)),), ("y",), 18,
         "axis 'rows' (dimension 0) is 'batch' in the graph"),
        ((DummyInput("x", "float32", ("batch", 5)),), ("y",), 18, "dimension 1 is 4 in the graph"),
    ],
)  # fmt: skip
def test_each_departure_is_one_fault(inputs, outputs, opset, said):
    found = faults(linear(), inputs, outputs, opset)
    assert len(found) == 1
    assert said in found[0]


def test_a_variant_may_narrow_its_inputs_to_float16():
    made = linear()
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.FLOAT16
    assert faults(made) == []


def test_inputs_that_nothing_reads_are_listed():
    node = helper.make_node("Relu", ["x"], ["y"])
    made = model([node], [value("x", [1]), value("m", [1])], [value("y", [1])])
    assert unused_inputs(made) == ["m"]


def test_the_fix_of_another_rank_is_the_graphs_own_shape():
    def fix(shape):
        made = linear()
        made.graph.input[0].CopyFrom(helper.make_tensor_value_info("x", TensorProto.FLOAT, shape))
        (fault,) = interface_faults(made, (DummyInput("x", "float32", ("batch",)),), ("y",), 18)
        return fault.fix

    assert fix(["batch", 4]) == "write `shape: [batch, 4]` in `dummy_inputs`"
    assert fix([None, 4]) == "write `shape: [axis_0, 4]` in `dummy_inputs`"
    assert fix(None) == "save the model with the shape of this input"
