"""The step that replays an 8-bit model's sums: its report and its remarks."""

import json

import numpy as np
from onnx import helper

from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.steps.saturation import KIND, SaturationParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import model, value, weight
from tests.steps.graphs import save

DATA = """
import numpy as np


def feeds(row, other):
    for _ in range(5):
        yield {"x": np.array([row, other], np.float32)}
"""


def replayed(folder, weights, row=(255, 255), samples=3, *, given=False, zero=None):
    """A multiplication of dynamically quantized activations; (outcome, report).

    `given`: the quantizer was given the model as it is. `zero`: the fixed zero point of activations
    that have a step of 1.
    """
    (folder / "data.py").write_text(DATA)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], name="quantize"),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["i"], name="product"),
        helper.make_node("Cast", ["i"], ["y"], name="cast", to=1),
    ]
    constants = [weight("w", np.int8(weights))]
    if zero is not None:
        nodes[0] = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], name="quantize")
        constants += [weight("s", np.float32(1)), weight("z", np.uint8(zero))]
    made = model(nodes, [value("x", ["n", 2])], [value("y", None)], constants)
    params = SaturationParams(
        data=Entrypoint(
            f"{folder}/data.py:feeds", {"row": list(row), "other": [0, int(zero is None)]}
        ),
        inputs=(DummyInput("x", "float32", ("n", 2)),),
        axes=(),
        samples=samples,
        seed=0,
        variant="int8",
    )
    before = (
        made
        if given
        else model(
            [helper.make_node("Abs", ["x"], ["y"])], [value("x", ["n", 2])], [value("y", None)]
        )
    )
    inputs = {"model": save(made, folder / "m"), "source": save(before, folder / "before")}
    outcome, context = run_step(KIND, params, folder / "step", inputs)
    return outcome, json.loads((context.output("report") / "report.json").read_text())


def test_the_share_of_each_node_is_reported_and_the_fix_is_reported(tmp_path):
    outcome, report = replayed(tmp_path, [[127, 64, 0], [127, 64, 0]])
    (node,) = report["nodes"]
    assert report["samples"] == 3
    assert (node["node"], node["sums"], node["saturated"]) == ("product", 3 * 2 * 3, 3)
    assert outcome.metrics["greatest_share"] == 1 / 6
    (note,) = outcome.notes
    assert note.startswith("WARNING: variant 'int8': 16-bit sums saturate")
    assert "product 16.7% (SQNR " in note
    assert " in 1 node over 3 samples: " in note
    assert note.endswith("write `reduce_range: pairs`")


def test_sums_that_could_and_do_not_are_reported_as_such(tmp_path):
    outcome, report = replayed(tmp_path, [[100], [100]], row=(1, 0))
    assert [each["saturated"] for each in report["nodes"]] == [0]
    assert "no 16-bit sum saturates in 3 samples, though those of 1 node could" in outcome.notes[0]


def test_weights_of_seven_bits_need_no_replay(tmp_path):
    outcome, report = replayed(tmp_path, [[64, -64], [64, -64]])
    assert (report["nodes"], outcome.notes, outcome.metrics["samples"]) == ([], (), 0)
