"""A variant in ORT format: same bytes, its operators listed, judged like any variant."""

import json

import numpy as np
import pytest
from onnx import helper, numpy_helper

from onnxbuild.core.errors import StepError
from onnxbuild.core.target import CPU_TARGET, TargetGates
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.ahead_of_time.artifact_file import OPERATORS_FILE, read_description
from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.ahead_of_time.ort_format import required_operators
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.steps import validate
from onnxbuild.steps.ort_format import KIND, OrtFormatParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear
from tests.steps.graphs import digits
from tests.steps.test_validate import reference


def made(folder, model=None, **options):
    source = model or digits(folder / "model")
    params = OrtFormatParams(OrtFormatOptions(**options))
    outcome, context = run_step(KIND, params, folder, {"model": source})
    return outcome, context.output("artifact")


@pytest.mark.parametrize("style", ["fixed", "runtime"])
def test_two_conversions_in_two_folders_give_the_same_bytes(tmp_path, style):
    source = digits(tmp_path / "model")
    _, one = made(tmp_path / "one", source, style=style)
    _, other = made(tmp_path / "other" / "place", source, style=style)
    for name in ("model.ort", OPERATORS_FILE, "artifact.json"):
        assert (one / name).read_bytes() == (other / name).read_bytes()


def test_the_list_names_operators_with_their_types_and_no_path(tmp_path):
    outcome, folder = made(tmp_path)
    text = (folder / OPERATORS_FILE).read_text()
    assert str(tmp_path) not in text
    assert '{"inputs": {"0": ["float"]}}' in text
    assert "--enable_reduced_operator_type_support" in text
    operators = required_operators(text)
    assert {"ai.onnx:MaxPool", "com.microsoft:FusedConv", "com.microsoft:FusedGemm"} <= set(
        operators
    )
    assert outcome.metrics["required_operators"] == len(operators)


def test_arm_gets_no_layouts_of_this_cpu_and_any_machine_may_load_it(tmp_path):
    _, arm = made(tmp_path / "arm")
    _, amd64 = made(tmp_path / "amd64", platform="amd64")
    assert read_description(arm).made_for is None
    assert read_description(amd64).made_for is not None
    assert not any("nchwc" in each for each in read_description(arm).facts["required_operators"])


def test_weights_of_16_bits_that_become_fp32_are_noted(tmp_path):
    weights = numpy_helper.from_array(np.eye(256, dtype="float16"), "weights")
    values = [
        helper.make_tensor_value_info(name, weights.data_type, ["batch", 256]) for name in "xy"
    ]
    node = helper.make_node("MatMul", ["x", "weights"], ["y"])
    graph = helper.make_graph([node], "graph", values[:1], values[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (tmp_path / "model").mkdir()
    save_model(model, tmp_path / "model")
    outcome, _ = made(tmp_path, tmp_path / "model", style="fixed")
    assert outcome.notes[0].startswith("ONNX Runtime has made fp32 of 0.1 MB of float16 weights")
    assert "model.ort has 0.3 MB, the variant's model 0.1 MB" in outcome.notes[0]


def test_it_is_held_against_pytorch_as_any_variant_is(tmp_path):
    save_model(linear(), tmp_path / "model")
    _, artifact = made(tmp_path, tmp_path / "model")
    truth = reference(tmp_path / "reference", lambda y: y + 1e-3)
    params = validate.ValidateParams(
        "fp32-ort", "fp32", VariantTolerances(atol=1e-5, rtol=1e-4), CPU_TARGET, TargetGates()
    )
    inputs = {"model": artifact, "reference": truth}
    outcome, context = run_step(validate.KIND, params, tmp_path / "validate", inputs)
    report = json.loads((context.output("report") / "report.json").read_text())
    assert not report["passed"]
    assert outcome.findings
    assert all("fp32-ort" in each.where for each in outcome.findings)


def test_a_model_over_the_formats_limit_is_refused(tmp_path):
    source = digits(tmp_path / "model")
    with (source / "model.onnx.data").open("wb") as file:
        file.truncate(1 << 31)  # sparse
    with pytest.raises(StepError, match="holds 2 GiB at most") as caught:
        made(tmp_path, source)
    assert "ahead_of_time" in caught.value.fix
