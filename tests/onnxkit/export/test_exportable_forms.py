"""transformers' state space models and mixtures of experts, exported at small sizes."""

from pathlib import Path

import pytest
import torch

from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.export.exportable_forms import grouped_experts, scanned_recurrences
from onnxbuild.onnxkit.export.stable_translations import NOTE
from onnxbuild.onnxkit.model.inspect import summarize
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.steps import export
from tests.fakes.step_context import run_step


@pytest.fixture(autouse=True, scope="module")
def _transformers():
    pytest.importorskip("transformers", minversion="5.20")


MODELS = Path(__file__).parent / "transformer_models.py"
INPUTS = (
    DummyInput("input_ids", "int64", ("batch", "sequence"), low=1, high=50),
    DummyInput("attention_mask", "int64", ("batch", "sequence"), fill=1),
)
AXES = (Axis("batch", 1, 8, 2), Axis("sequence", 1, 64, 7))


def exported(folder, name, *, exporter="auto", opset=18):
    """The step compares with PyTorch at three sizes, with other values too."""
    params = export.ExportParams(
        model=Entrypoint(f"{MODELS}:load", {"name": name}),
        inputs=INPUTS,
        outputs=(),
        axes=AXES,
        opset=opset,
        translations=None,
        options=export.ExportOptions(exporter=exporter),
    )
    outcome, context = run_step(export.KIND, params, folder)
    return outcome, summarize(load_model(context.output("model")))["operators"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "function"),
    [("mamba", "mamba_selective_scan"), ("qwen3_next", "torch_chunk_gated_delta_rule")],
)
def test_a_recurrence_becomes_a_scan_over_any_length(tmp_path, name, function):
    outcome, operators = exported(tmp_path, name)
    assert outcome.metrics["exporter"] == "dynamo"
    note = f"transformers' {function} is exported as an ONNX Scan over the sequence"
    assert note in outcome.notes
    assert operators["Scan"] == 1


@pytest.mark.parametrize("opset", [pytest.param(14, marks=pytest.mark.slow), 18])
def test_torchscript_exports_a_mixture_of_experts(tmp_path, opset):
    outcome, operators = exported(tmp_path, "mixtral", exporter="torchscript", opset=opset)
    assert NOTE in outcome.notes
    assert operators["MatMul"] >= 2 * 4


@pytest.mark.slow
def test_a_recurrence_goes_to_torch_export_as_a_scan():
    from onnxbuild.onnxkit.data.feeds import make_feeds
    from onnxbuild.steps.torch_export import export_program
    from tests.onnxkit.export import transformer_models as models

    module = models.load("mamba")
    feeds = make_feeds(INPUTS, {"batch": 2, "sequence": 7}, "example")
    program = export_program(module, INPUTS, (), AXES, feeds, strict=False, where="m:convert")
    assert "torch.ops.higher_order.scan" in program.graph_module.code
    ids, mask = torch.arange(33).reshape(3, 11), torch.ones(3, 11, dtype=torch.int64)
    with torch.no_grad():
        (found,) = program.module()(ids, mask)
        torch.testing.assert_close(found, module(ids, mask))


def test_models_are_left_as_they_were():
    import transformers.models.mamba.modeling_mamba as mamba

    from tests.onnxkit.export import transformer_models as models

    original = mamba.mamba_selective_scan
    looping, recurrent = models.load("mixtral_with_a_loop"), models.load("mamba")
    notes = set()
    with scanned_recurrences(recurrent, notes), grouped_experts(looping, notes):
        assert mamba.mamba_selective_scan is not original
        assert looping.model.config._experts_implementation == "grouped_mm"
    assert mamba.mamba_selective_scan is original
    assert looping.model.config._experts_implementation == "eager"
    assert len(notes) == 1
