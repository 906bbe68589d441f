import pytest
from onnx import TensorProto, helper

from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.model.opsets import (
    MissingForm,
    OpsetError,
    checker_faults,
    missing_forms,
    needed_opset,
    newest_form,
)
from tests.onnxkit.models import branching, contrib, linear, model, value


def one(op_type, opset, inputs=1, **attributes):
    names = ["x", "s", "z"][:inputs]
    node = helper.make_node(op_type, names, ["y"], **attributes)
    return model([node], [value(n, [4]) for n in names], [value("y", [4])], opset=opset)


@pytest.mark.parametrize(
    ("made", "operator", "least"),
    [
        (one("LayerNormalization", 16, 2), "LayerNormalization", 17),
        (one("ReduceMean", 13, 2), "ReduceMean", 18),
        (one("Attention", 22, 3), "Attention", 23),
    ],
)
def test_the_least_opset_of_a_form_is_the_schemas(made, operator, least):
    assert missing_forms(made) == (MissingForm(operator, least),)
    said, number = needed_opset(made)
    assert number == least
    assert said == (
        f"'{operator}' needs opset {least} in the form in which the graph has it; it declares "
        f"opset {made.opset_import[0].version}"
    )
    made.opset_import[0].version = least
    assert missing_forms(made) == ()


def test_what_no_later_opset_has_is_not_promised():
    made = one("Nope", 18)
    assert [each.least for each in missing_forms(made)] == [None]
    assert needed_opset(made) is None


def test_a_type_that_came_later_counts_too():
    node = helper.make_node("Min", ["x", "x"], ["y"])
    ends = ([value(name, [4], TensorProto.INT64)] for name in "xy")
    made = model([node], *ends, opset=11)
    assert missing_forms(made) == ()
    said, least = needed_opset(made)
    assert least == 12
    assert said.startswith("'Min' needs opset 12 in the form")
    made.opset_import[0].version = least
    assert needed_opset(made) is None


def test_operators_of_branches_and_functions_of_ones_own_fit():
    assert missing_forms(branching()) == ()
    made = one("Mine", 18)
    node = helper.make_node("Relu", ["a"], ["b"])
    imports = [helper.make_opsetid("", 18)]
    made.functions.append(helper.make_function("", "Mine", ["a"], ["b"], [node], imports))
    assert missing_forms(made) == ()


def test_the_operator_that_came_last_says_which_opset_a_graph_needs():
    assert newest_form(linear(opset=18)) == ("Add", 14)
    assert newest_form(one("LayerNormalization", 18, 2)) == ("LayerNormalization", 17)


def test_the_error_is_its_own_fix():
    assert OpsetError("'Gelu' needs opset 20", least=20).fix == "write `opset: 20`"


def said(made, tmp_path, **options):
    save_model(made, tmp_path / "model", **options)
    return [f"{each.where}: {each.what}" for each in checker_faults(tmp_path / "model", tmp_path)]


def test_sound_models_have_no_fault(tmp_path):
    for n, made in enumerate((linear(), branching(), contrib())):
        assert said(made, tmp_path / str(n)) == []


def test_a_model_with_external_weights_is_checked_by_path(tmp_path):
    assert said(linear(rows=600), tmp_path, external="always") == []


def test_an_unknown_operator_is_the_checkers_fault(tmp_path):
    made = model([helper.make_node("Nope", ["x"], ["y"])], [value("x", [1])], [value("y", [1])])
    assert said(made, tmp_path) == ["checker: no version of ONNX has the operator 'Nope'"]


def test_shapes_that_contradict_each_other_are_found(tmp_path):
    made = linear()
    made.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 7
    found = said(made, tmp_path)
    assert len(found) == 1
    assert found[0].startswith("shape inference: shape inference fails:")
