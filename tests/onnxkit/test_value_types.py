import numpy as np
import onnx

from onnxbuild.onnxkit.model_files import save_model
from onnxbuild.onnxkit.value_types import load_typed
from tests.onnxkit.models import linear, model, value, weight


def types(made):
    return {each.name: each.type.tensor_type.elem_type for each in made.graph.value_info}


def behind_a_contrib_operator():
    nodes = [
        onnx.helper.make_node("Gelu", ["x"], ["a"], domain="com.microsoft"),
        onnx.helper.make_node("Shape", ["a"], ["b"]),
        onnx.helper.make_node("Add", ["a", "w"], ["c"]),
        onnx.helper.make_node("Identity", ["c"], ["y"]),
    ]
    imports = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.microsoft", 1)]
    w = weight("w", np.ones(512, np.float32))
    return model(
        nodes, [value("x", ["batch", 512])], [value("y", ["batch", 512])], [w], imports=imports
    )


def test_values_behind_another_domains_operator_get_their_types(tmp_path):
    save_model(behind_a_contrib_operator(), tmp_path)
    found = types(load_typed(tmp_path))
    assert found == {"a": 1, "b": 7, "c": 1}


def test_weights_beside_the_model_are_loaded(tmp_path):
    save_model(behind_a_contrib_operator(), tmp_path, external="always")
    (w,) = load_typed(tmp_path).graph.initializer
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(w), np.ones(512, np.float32))


def test_outputs_and_inputs_stay_as_they_are(tmp_path):
    save_model(linear(), tmp_path)
    made = load_typed(tmp_path)
    assert [each.name for each in made.graph.output] == ["y"]
    assert [each.name for each in made.graph.input] == ["x"]
    assert types(made) == {"xw": 1, "sum": 1}


def test_a_graph_that_the_runtime_refuses_is_loaded_without_types(tmp_path):
    node = onnx.helper.make_node("Nonsense", ["x"], ["a"])
    other = onnx.helper.make_node("Relu", ["a"], ["y"])
    save_model(model([node, other], [value("x", [1])], [value("y", [1])]), tmp_path)
    assert types(load_typed(tmp_path)) == {}
