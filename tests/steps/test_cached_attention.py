"""Decoders of transformers' with fused attention: the tokens of `generate`, the state in one buffer; and what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from onnx import helper, load, numpy_helper

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.steps import optimize
from tests.fakes.step_context import run_step
from tests.steps.decoders import DECODERS
from tests.steps.test_state import AXES, built

OPERATOR = "GroupQueryAttention"


def in_place(inputs):
    return tuple(
        replace(each, growth=replace(each.growth, in_place=True)) if each.growth else each
        for each in inputs
    )


def optimized(folder, model, inputs, **options):
    """The step's outcome, and the folder of its model."""
    (folder / "config").mkdir(parents=True, exist_ok=True)
    (folder / "config/report.json").write_text("{}")
    params = optimize.OptimizeParams(optimize.OptimizeOptions(**options), inputs, AXES)
    given = {"model": model, "config": folder / "config"}
    outcome, context = run_step(optimize.KIND, params, folder / "optimize", given)
    return outcome, context.output("model")


@pytest.mark.slow
@pytest.mark.parametrize("name", DECODERS)
def test_a_decoder_gives_the_tokens_of_generate_with_its_cache_in_one_buffer(name, tmp_path):
    made = built(tmp_path, name)
    _, exported = made.export()
    made.inputs = in_place(made.inputs)
    outcome, model = optimized(tmp_path, exported, made.inputs)
    assert outcome.metrics["fused"][OPERATOR] == 2
    assert not [each for each in outcome.notes if "attention" in each]
    tokens = made.generated(model, made.tokens())
    assert tokens.findings == ()
    assert tokens.metrics["equal"] == 1


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    """A decoder with a state in place, its exported graph, and its fused one."""
    folder = tmp_path_factory.mktemp("llama")
    made = built(folder, "llama")
    _, exported = made.export()
    reference = made.reference()
    made.inputs = in_place(made.inputs)
    return made, exported, optimized(folder, exported, made.inputs)[1], reference


@pytest.mark.slow
def test_a_fused_graph_is_equal_to_pytorch_at_each_point_with_nothing_behind_its_cache_read(llama):
    made, _, model, reference = llama
    passed = made.validated(model, reference, in_place=made.inputs)
    assert passed.findings == ()
    assert passed.metrics["points"] > 5


@pytest.mark.slow
def test_a_graph_that_reads_what_is_behind_its_cache_fails_in_place_alone(llama, tmp_path):
    made, _, model, reference = llama
    wrong = load(model / "model.onnx")
    (past,) = (node for node in wrong.graph.node if node.output[0] == "onnxbuild/past")
    wrong.graph.initializer.append(numpy_helper.from_array(np.array([2]), "mutant_axis"))
    past.op_type = "Gather"  # how long the buffer is, in place of how much of it is used
    past.input[:] = ["mutant_shape", "mutant_axis"]
    wrong.graph.node.insert(0, helper.make_node("Shape", ["past.0.key"], ["mutant_shape"]))
    save_model(wrong, tmp_path / "wrong")
    assert made.validated(tmp_path / "wrong", reference).findings == ()
    assert made.validated(tmp_path / "wrong", reference, in_place=made.inputs).findings


@pytest.mark.slow
def test_a_state_in_place_needs_fused_attention(llama, tmp_path):
    made, exported, _, _ = llama
    with pytest.raises(StepError, match="level` is none") as caught:
        optimized(tmp_path, exported, made.inputs, level="none")
    assert "`update: grows`" in caught.value.fix
