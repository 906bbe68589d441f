"""A model that was made elsewhere gets a recipe's names, sizes, outputs and opset."""

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import FILE_DATA, Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.model.graphs import opset_of
from onnxbuild.onnxkit.model.raised_opset import raise_opset
from onnxbuild.onnxkit.ready_onnx.adapt import adapt
from onnxbuild.steps.import_onnx import KIND, ImportOnnxParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import branching, linear, model, value, weight

X = (DummyInput("x", "float32", ("batch", 4)),)


def shapes(made):
    return {
        each.name: [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim]
        for each in (*made.graph.input, *made.graph.output)
    }


def run(made, **feeds):
    import onnxruntime

    session = onnxruntime.InferenceSession(
        made.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, feeds)


def two_outputs():
    """y = Relu(x), z = Exp(Neg(x))."""
    nodes = [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("Relu", ["x"], ["y"]),
        helper.make_node("Exp", ["n"], ["z"]),
    ]
    outputs = [value("y", ["batch", 4]), value("z", ["batch", 4])]
    return model(nodes, [value("x", ["batch", 4])], outputs)


def test_names_change_everywhere_and_what_has_the_name_gives_way():
    made = linear()
    made.graph.node[0].output[0] = made.graph.node[1].input[0] = "scores"  # an inner value
    feeds = np.ones((2, 4), np.float32)
    before = run(made, x=feeds)
    adapt(
        made,
        (DummyInput("image", "float32", ("batch", 4)),),
        (),
        {"x": "image", "y": "scores"},
        "",
    )
    onnx.checker.check_model(made)
    assert list(shapes(made)) == ["image", "scores"]
    np.testing.assert_array_equal(run(made, image=feeds), before)


def test_a_name_that_branches_read_changes_there_too():
    made = branching()
    inputs = (DummyInput("image", "float32", (2,)), DummyInput("c", "bool", ()))
    adapt(made, inputs, (), {"x": "image"}, "")
    found = run(made, image=np.zeros(2, np.float32), c=np.array(True))
    np.testing.assert_array_equal(found[0], [1, 1])


def test_a_chosen_output_stays_and_what_only_others_need_goes():
    made = two_outputs()
    adapt(made, X, ("y",), {}, "")
    assert [node.op_type for node in made.graph.node] == ["Relu"]
    made = two_outputs()
    adapt(made, X, ("z", "y"), {}, "")
    assert [each.name for each in made.graph.output] == ["z", "y"]
    with pytest.raises(StepError, match="no output 'w'; it has y, z"):
        adapt(two_outputs(), X, ("w",), {}, "")


def test_a_size_that_the_recipe_fixes_is_fixed_wherever_it_is_named():
    made = linear()
    adapt(made, (DummyInput("x", "float32", (3, 4)),), (), {}, "")
    assert shapes(made) == {"x": [3, 4], "y": [3, 3]}


@pytest.mark.parametrize("unknown", ["?", None, -1, "None"])
def test_an_axis_without_a_name_gets_the_recipes(unknown):
    made = linear()
    made.graph.input[0].CopyFrom(value("x", [unknown, 4]))
    adapt(made, X, (), {}, "")
    assert shapes(made)["x"] == ["batch", 4]


def rows_that_differ():
    """The rows of x, and as many as x has elements above 0, which the model calls `batch`."""
    nodes = [
        helper.make_node("Relu", ["x"], ["clipped"]),
        helper.make_node("Abs", ["clipped"], ["whole"]),
        helper.make_node("NonZero", ["whole"], ["places"]),
        helper.make_node("Transpose", ["places"], ["found"]),
        helper.make_node("Cast", ["found"], ["real"], to=1),
        helper.make_node("Sin", ["real"], ["waves"]),
        helper.make_node("ReduceSum", ["waves"], ["y"], keepdims=0),
    ]
    inside = [value(name, ["batch", 2]) for name in ("real", "waves")]
    inside.append(value("found", ["batch", 2], onnx.TensorProto.INT64))
    return model(nodes, [value("x", ["rows", 2])], [value("y", [])], value_info=inside)


def test_a_name_of_the_recipe_that_the_model_has_for_another_size_gives_way():
    made, feeds = rows_that_differ(), np.ones((3, 2), np.float32)
    (before,) = run(made, x=feeds)
    adapt(made, (DummyInput("x", "float32", ("batch", 2)),), (), {}, "")
    assert shapes(made)["x"] == ["batch", 2]
    assert {each.type.tensor_type.shape.dim[0].dim_param for each in made.graph.value_info} == {
        "batch_0"
    }
    (after,) = run(made, x=feeds)
    assert after == before


def test_two_names_for_what_the_model_has_one_for_are_refused():
    nodes = [helper.make_node("Add", ["a", "b"], ["y"])]
    made = model(nodes, [value(name, ["n", 8]) for name in "ab"], [value("y", ["n", 8])])
    wanted = (DummyInput("a", "float32", (2, 8)), DummyInput("b", "float32", ("batch", 8)))
    with pytest.raises(
        StepError, match="dimension 0 of 'a' and dimension 0 of 'b' both 'n'"
    ) as caught:
        adapt(made, wanted, (), {}, "demo:import")
    assert caught.value.fix == "write 2 or batch in both shapes in `dummy_inputs`"


def test_an_opset_is_raised_and_the_model_computes_the_same():
    random = np.random.default_rng(0)
    large = random.standard_normal((4, 512)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Unsqueeze", ["a"], ["b"], axes=[0]),  # an attribute until opset 13
        helper.make_node("Squeeze", ["b"], ["y"], axes=[0]),
    ]
    made = model(
        nodes,
        [value("x", ["batch", 4])],
        [value("y", ["batch", 512])],
        [weight("w", large)],
        opset=11,
    )
    feeds = random.standard_normal((3, 4)).astype(np.float32)
    before = run(made, x=feeds)
    raised = raise_opset(made, 18, "r:opset")
    assert opset_of(raised) == 18
    assert [each.name for each in raised.graph.input] == ["x"]
    onnx.checker.check_model(raised, full_check=True)
    np.testing.assert_array_equal(run(raised, x=feeds), before)


def test_functions_come_along_to_a_later_opset_with_their_default_attributes():
    domain, imports = "mine", [helper.make_opsetid("", 16), helper.make_opsetid("mine", 1)]
    leaky = helper.make_node("LeakyRelu", ["X"], ["Y"])
    leaky.attribute.append(
        onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    )
    slope = helper.make_attribute("slope", 0.5)
    inner = helper.make_function(
        domain, "Inner", ["X"], ["Y"], [leaky], imports[:1], attribute_protos=[slope]
    )
    nodes = [
        helper.make_node("Inner", ["X"], ["a"], domain=domain),
        helper.make_node("Inner", ["a"], ["Y"], domain=domain, slope=0.25),
    ]
    outer = helper.make_function(domain, "Outer", ["X"], ["Y"], nodes, imports)
    made = model(
        [helper.make_node("Outer", ["x"], ["y"], domain=domain)],
        [value("x", ["batch", 4])],
        [value("y", ["batch", 4])],
        imports=imports,
    )
    made.functions.extend([inner, outer])
    feeds = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    before = run(made, x=feeds)
    raised = raise_opset(made, 20, "r:opset")
    assert opset_of(raised) == 20
    np.testing.assert_array_equal(run(raised, x=feeds), before)


def two_rates():
    """A branch that squeezes an axis: of 4 columns it has 1 row, of 8 it would have 2, which it can't take."""
    branches = {}
    for name, columns in (("then", 4), ("else", 8)):
        rows, squeezed = f"{name}_rows", f"{name}_out"
        nodes = [
            helper.make_node("Reshape", ["x", f"{name}_shape"], [rows]),
            helper.make_node("Squeeze", [rows, "zero"], [squeezed]),
        ]
        branches[f"{name}_branch"] = helper.make_graph(
            nodes,
            name,
            [],
            [value(squeezed, [None])],
            [weight(f"{name}_shape", np.array([-1, columns]))],
        )
    return model(
        [helper.make_node("If", ["is_four"], ["y"], **branches)],
        [value("x", ["samples"]), value("is_four", [], onnx.TensorProto.BOOL)],
        [value("y", [None])],
        [weight("zero", np.array([0]))],
    )


def test_a_fixed_size_that_a_branch_can_not_take_is_named_with_the_axis_to_write(tmp_path):
    onnx.save(two_rates(), tmp_path / "m.onnx")
    file = Entrypoint(FILE_DATA, files=(str(tmp_path / "m.onnx"),))
    flag = DummyInput("is_four", "bool", (), fill=False)

    def run(shape, axes=()):
        params = ImportOnnxParams(file, (DummyInput("x", "float32", shape), flag), ("y",), axes)
        return run_step(KIND, params, tmp_path / str(len(axes)))

    with pytest.raises(StepError, match="refuses the model") as caught:
        run((8,))
    assert "Load model from" not in caught.value.what
    assert "fixes 8 of 'x'" in caught.value.fix
    assert "`dynamic_axes: {size: {min: 8, max: 8, example: 8}}`" in caught.value.fix
    run(("size",), (Axis("size", 8, 8, 8),))
