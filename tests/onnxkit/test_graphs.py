import onnx
from onnx import TensorProto

from onnxbuild.onnxkit.graphs import all_nodes, names_read, opset_of, tensor_bytes
from tests.onnxkit.models import branching, linear


def test_a_node_reads_what_its_subgraphs_capture():
    assert names_read(branching().graph.node[0]) >= {"c", "x", "w"}


def test_nodes_of_all_graphs_are_walked():
    assert [node.op_type for node in all_nodes(branching())] == ["If", "Identity", "Add"]


def test_bytes_follow_from_type_and_shape():
    def tensor(kind, *dims):
        return onnx.TensorProto(data_type=kind, dims=dims)

    assert tensor_bytes(tensor(TensorProto.FLOAT, 2, 3)) == 24
    assert tensor_bytes(tensor(TensorProto.BFLOAT16, 2, 3)) == 12
    assert tensor_bytes(tensor(TensorProto.INT4, 5)) == 3
    assert tensor_bytes(tensor(TensorProto.DOUBLE)) == 8
    assert tensor_bytes(tensor(TensorProto.FLOAT, 0, 3)) == 0
    assert tensor_bytes(onnx.helper.make_tensor("s", TensorProto.STRING, [1], [b"abc"])) == 3


def test_the_opset_is_that_of_the_default_domain():
    assert opset_of(linear(opset=17)) == 17
