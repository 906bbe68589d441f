from onnx import helper

from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.model.opsets import checker_faults
from tests.onnxkit.models import branching, contrib, linear, model, value


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
