"""An input takes what the component gives whose output it is, or the gate says in what they differ."""

import json

import pytest
from onnx import TensorProto, helper

from onnxbuild.core.axis import Axis
from onnxbuild.features.gates.connections import KIND, Connected, ConnectionsParams
from onnxbuild.onnxkit.model.model_files import save_model
from tests.fakes.step_context import run_step
from tests.onnxkit.models import model

AXES = (Axis("batch", 1, 8, 2), Axis("frames", 4, 64, 12, 4))
PARAMS = ConnectionsParams((Connected("seen", "encoder", "cross"),), AXES)


def passing_on(given: str, taken: str, shape: list, dtype: int):
    """A model that gives `taken` as `given`."""
    values = [helper.make_tensor_value_info(name, dtype, shape) for name in (taken, given)]
    node = helper.make_node("Identity", [taken], [given])
    return model([node], [values[0]], [values[1]])


def check(folder, given, taken):
    """Run the gate on (shape, type) of the encoder's output and of the decoder's input."""
    save_model(passing_on("cross", "ids", *given), folder / "encoder")
    save_model(passing_on("logits", "seen", *taken), folder / "decoder")
    inputs = {"model": folder / "decoder", "source/encoder": folder / "encoder"}
    outcome, context = run_step(KIND, PARAMS, folder, inputs)
    report = json.loads((context.output("report") / "report.json").read_text())
    assert report["passed"] == (not outcome.findings)
    return [each.what for each in outcome.findings]


FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16
FITTING = {
    "the same": (["batch", "frames", 64], ["batch", "frames", 64]),
    "other names": (["rows", "positions", 64], ["batch", "frames", 64]),
    "a size that the axis takes": ([2, 12, 64], ["batch", "frames", 64]),
    "no size": ([], []),
    "a size that the graph does not say": (
        ["batch", "frames", "cross_dim_2"],
        ["batch", "frames", 64],
    ),
}


@pytest.mark.parametrize("case", FITTING)
def test_an_input_that_takes_all_that_the_output_gives_passes(tmp_path, case):
    given, taken = FITTING[case]
    assert check(tmp_path, (given, FLOAT), (taken, FLOAT)) == []


UNFIT = {
    "another size": (["batch", "frames", 65], FLOAT, "float32 [batch, frames, 65]"),
    "another type": (["batch", "frames", 64], HALF, "float16 [batch, frames, 64]"),
    "another rank": (["batch", 64], FLOAT, "float32 [batch, 64]"),
    "any size where one is taken": (["batch", "frames", "width"], FLOAT, "float32 [batch, frames, width]"),
    "a size beyond the axis": (["batch", 68, 64], FLOAT, "float32 [batch, 68, 64]"),
    "no multiple of the axis's": (["batch", 10, 64], FLOAT, "float32 [batch, 10, 64]"),
}  # fmt: skip


@pytest.mark.parametrize("case", UNFIT)
def test_an_output_that_the_input_does_not_take_is_a_finding(tmp_path, case):
    shape, dtype, words = UNFIT[case]
    assert check(tmp_path, (shape, dtype), (["batch", "frames", 64], FLOAT)) == [
        f"'cross' of component 'encoder' is {words}; the input 'seen' takes float32 [batch, frames, 64]"
    ]
