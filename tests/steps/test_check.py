import json

from onnx import helper

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.steps import check
from tests.fakes.step_context import run_step
from tests.onnxkit.models import contrib, linear, model, value

X = DummyInput("x", "float32", ("batch", 4))
PARAMS = check.CheckParams((X,), ("y",), (Axis("batch", 1, 8, 3),), 18)


def run(folder, made, params=PARAMS, **options):
    save_model(made, folder / "model", **options)
    outcome, context = run_step(check.KIND, params, folder, {"model": folder / "model"})
    return outcome, json.loads((context.output("report") / "report.json").read_text())


def test_a_sound_model_passes_and_is_summed_up(tmp_path):
    outcome, report = run(tmp_path, linear())
    assert outcome.findings == ()
    assert report["passed"]
    assert report["dynamic_axes"] == {"batch": [1, 8]}
    assert report["summary"]["operators"] == {"Add": 1, "MatMul": 1, "Relu": 1}
    size = (tmp_path / "model" / "model.onnx").stat().st_size
    assert outcome.metrics == {"nodes": 3, "parameters": 15, "size_bytes": size, "ir_version": 10}


def test_operators_of_other_domains_pass(tmp_path):
    outcome, report = run(tmp_path, contrib())
    assert outcome.findings == ()
    assert report["summary"]["operators"] == {"com.microsoft.Gelu": 1}


def test_weights_next_to_the_graph_are_no_obstacle(tmp_path):
    x = DummyInput("x", "float32", ("batch", 600))
    params = check.CheckParams((x,), ("y",), (Axis("batch", 1, 8, 3),), None)
    outcome, report = run(tmp_path, linear(rows=600), params, external="always")
    assert outcome.findings == ()
    assert report["summary"]["parameters"] == 1803
    assert report["summary"]["size_bytes"] > 7200


def test_a_fixed_axis_is_a_finding(tmp_path):
    made = linear()
    made.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    outcome, report = run(tmp_path, made)
    assert outcome.findings[0].what == "axis 'batch' (dimension 0) is fixed at 2 in the graph"
    assert outcome.findings[0].where == "input 'x'"
    assert not report["passed"]
    assert report["findings"][0]["fix"]


def test_all_findings_are_reported_at_once(tmp_path):
    node = helper.make_node("Nope", ["x"], ["z"])
    outcome, report = run(
        tmp_path, model([node], [value("x", ["n", 4])], [value("z", ["n"])], opset=17)
    )
    said = [f"{each.where}: {each.what}" for each in outcome.findings]
    assert len(said) == len(report["findings"]) == 4
    assert "opset: the graph has opset 17; expected 18" in said
    assert (
        "input 'x': axis 'batch' (dimension 0) is 'n' in the graph, which takes both for one"
        in (said)
    )
    assert "outputs: the graph's outputs are z; expected y" in said
    assert said[-1] == "checker: no version of ONNX has the operator 'Nope'"
