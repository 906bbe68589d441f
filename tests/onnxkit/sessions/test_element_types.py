import numpy as np
import onnx

from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.sessions.element_types import load_typed
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


def test_weights_next_to_the_model_are_loaded(tmp_path):
    save_model(behind_a_contrib_operator(), tmp_path, external="always")
    (w,) = load_typed(tmp_path).graph.initializer
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(w), np.ones(512, np.float32))


def test_a_value_of_unknown_shape_is_not_called_a_scalar(tmp_path):
    body = onnx.helper.make_graph(
        [onnx.helper.make_node("Identity", ["go"], ["go_on"]),
         onnx.helper.make_node("Neg", ["s"], ["s_next"])],
        "body",
        [value("i", [], 7), value("go", [], 9), value("s", None)],
        [value("go_on", [], 9), value("s_next", None)],
    )  # fmt: skip
    nodes = [
        onnx.helper.make_node("Loop", ["trips", "", "x"], ["z"], body=body),
        onnx.helper.make_node("MatMul", ["z", "w"], ["y"]),
    ]
    weights = [weight("w", np.eye(4, dtype=np.float32)), weight("trips", np.array(2))]
    made = model(nodes, [value("x", ["n", 4])], [value("y", ["n", 4])], weights)
    save_model(made, tmp_path)
    typed = load_typed(tmp_path)
    assert types(typed) == {"z": 1}
    assert not typed.graph.value_info[0].type.tensor_type.HasField("shape")
    onnx.checker.check_model(typed, full_check=True)


def test_values_of_branches_that_share_a_name_get_their_own(tmp_path):
    arms = [
        onnx.helper.make_graph(
            [onnx.helper.make_node("Add", ["x", "w"], ["h"])], name, [], [value("h", [2])],
            [weight("w", np.float32([n, n]))],
        )
        for n, name in enumerate(("then", "else"))
    ]  # fmt: skip
    node = onnx.helper.make_node("If", ["c"], ["y"], then_branch=arms[0], else_branch=arms[1])
    inputs = [value("c", [], 9), value("x", [2])]
    save_model(model([node], inputs, [value("y", [2])]), tmp_path)
    found = [each.g.initializer[0].name for each in load_typed(tmp_path).graph.node[0].attribute]
    assert sorted(found) == ["w", "w_0"]


def test_outputs_and_inputs_stay_as_they_are(tmp_path):
    save_model(linear(), tmp_path)
    made = load_typed(tmp_path)
    assert [each.name for each in made.graph.output] == ["y"]
    assert [each.name for each in made.graph.input] == ["x"]
    assert types(made) == {"xw": 1, "sum": 1}
