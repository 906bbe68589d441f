import numpy as np
import onnx

from onnxbuild.onnxkit.model.inspect import summarize
from tests.onnxkit.models import branching, contrib, linear, model, value


def test_a_summary_says_inputs_operators_and_weights():
    assert summarize(linear()) == {
        "ir_version": 10,
        "opsets": {"ai.onnx": 18},
        "inputs": [{"name": "x", "dtype": "float32", "shape": ["batch", 4]}],
        "outputs": [{"name": "y", "dtype": "float32", "shape": ["batch", 3]}],
        "nodes": 3,
        "operators": {"Add": 1, "MatMul": 1, "Relu": 1},
        "initializers": 2,
        "parameters": 15,
        "weights_bytes": 60,
        "weights_bytes_by_dtype": {"float32": 60},
        "functions": 0,
    }


def test_nodes_of_subgraphs_count_and_other_domains_are_named():
    assert summarize(branching())["operators"] == {"Add": 1, "Identity": 1, "If": 1}
    assert summarize(contrib())["operators"] == {"com.microsoft.Gelu": 1}


def test_weights_that_are_sparse_or_in_constant_nodes_count():
    dense = onnx.numpy_helper.from_array(np.ones((4, 3), np.float32))
    values = onnx.numpy_helper.from_array(np.float32([1, 2]), "sparse")
    places = onnx.numpy_helper.from_array(np.int64([0, 7]), "places")
    made = model(
        [
            onnx.helper.make_node("Constant", [], ["w"], value=dense),
            onnx.helper.make_node("MatMul", ["x", "w"], ["a"]),
            onnx.helper.make_node("MatMul", ["a", "sparse"], ["y"]),
        ],
        [value("x", ["batch", 4])],
        [value("y", ["batch", 3])],
    )
    made.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, places, [3, 3]))
    found = summarize(made)
    assert (found["initializers"], found["parameters"], found["weights_bytes"]) == (0, 14, 56)
