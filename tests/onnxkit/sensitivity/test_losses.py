import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.onnxkit.accuracy.sample_outputs import Fidelity
from onnxbuild.onnxkit.model.blocks import Block
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.sensitivity.losses import Loss, most_sensitive, rank
from onnxbuild.onnxkit.sensitivity.static_rounding import grid_step
from onnxbuild.steps import calibrate, preprocess, quantize_static, sensitivity
from tests.fakes.step_context import FolderContext, run_step
from tests.onnxkit.models import model, value, weight
from tests.steps.graphs import run_model


class Scale:
    """Losses that add up; says what was measured."""

    def __init__(self, losses, drops=None):
        self.losses, self.drops, self.asked = losses, drops, set()

    def __call__(self, nodes):
        self.asked.add(frozenset(nodes))
        loss = sum(self.losses[n] for n in nodes)
        drop = sum(self.drops[n] for n in nodes) if self.drops else None
        return Loss(Fidelity(1, 1 - loss, 1 - loss, 0, None), None, drop)


def pairs(count):
    return [Block(f"h.{n}", (2 * n, 2 * n + 1)) for n in range(count)]


def names(count):
    return [f"node_{n:03}" for n in range(count)]


def test_all_is_measured_where_there_is_room():
    scale = Scale([0.01, 0.03, 0.02, 0.05])
    found = rank(scale, pairs(2), names(4), 6)
    assert [n for n, _, _ in found.nodes] == [3, 1, 2, 0]
    assert [block.name for block, _ in found.blocks] == ["h.1", "h.0"]
    assert len(scale.asked) == 6


def test_nodes_of_the_worst_blocks_alone_are_measured_where_there_is_not():
    losses = [0.001] * 20
    losses[13] = 0.1
    losses[4] = 0.05
    scale = Scale(losses)
    found = rank(scale, pairs(10), names(20), 20)
    assert len(scale.asked) == 20
    measured = [n for n, _, loss in found.nodes if loss]
    assert measured[:2] == [13, 4]
    assert len(measured) == 10
    assert {12, 13, 4, 5} < set(measured)
    assert [n for n, _, _ in found.nodes][:2] == [13, 4]
    assert sorted(n for n, _, _ in found.nodes) == list(range(20))


def test_what_was_not_measured_comes_in_its_blocks_order():
    losses = [0.1, 0.1, 0.001, 0.001, 0.02, 0.02]
    found = rank(Scale(losses), pairs(3), names(6), 6)
    assert [(n, loss is None) for n, _, loss in found.nodes] == [
        (0, False), (1, False), (4, True), (5, True), (2, True), (3, True),
    ]  # fmt: skip


@pytest.mark.parametrize("settings", [2, 50])
def test_measurements_are_bounded_whatever_the_model(settings):
    count = 300
    scale = Scale([0.001 * (n % 7) for n in range(count)])
    found = rank(scale, pairs(count // 2), names(count), settings)
    assert len(scale.asked) <= settings
    assert len(found.nodes) == count
    assert found.nodes[0][2] is not None


def test_a_block_too_large_to_measure_whole_is_measured_in_part():
    scale = Scale([0.001] * 9 + [0.1])
    found = rank(scale, [Block("all", tuple(range(10)))], names(10), 4)
    assert [n for n, _, loss in found.nodes if loss] == [0, 1, 2]


def test_the_metrics_drop_ranks_before_the_cosine():
    found = rank(Scale([0.3, 0.1, 0.2], [0.0, 0.05, 0.0]), [Block("a", (0, 1, 2))], names(3), 9)
    assert [n for n, _, _ in found.nodes] == [1, 0, 2]


def kept(folder: Path, count: int, share: float) -> int:
    nodes = [{"name": f"n{number}"} for number in range(count)]
    (folder / "report.json").write_text(json.dumps({"nodes": nodes}))
    names = most_sensitive(FolderContext(None, folder, {"sensitivity": folder}), share)
    assert names == [f"n{number}" for number in range(len(names))]
    return len(names)


@pytest.mark.parametrize(
    ("count", "share", "expected"), [(36, 0.05, 2), (100, 0.07, 7), (1, 0.5, 0)]
)
def test_a_share_is_rounded_up_and_leaves_one_to_quantize(tmp_path, count, share, expected):
    assert kept(tmp_path, count, share) == expected


def test_all_of_them_are_kept_where_that_is_asked_and_none_where_nothing_is(tmp_path):
    assert (kept(tmp_path, 3, 1.0), kept(tmp_path, 3, 0.0)) == (3, 0)
    assert kept(tmp_path, 0, 0.5) == 0


IMAGE = DummyInput("x", "float32", ("n", 4, 6, 6))
USER = """
import numpy as np

def data():
    generator = np.random.default_rng(5)
    for _ in range(6):
        x = generator.standard_normal((2, 4, 6, 6)).astype(np.float32)
        x[:, 0] *= 300  # sets the scale of all channels; the first Conv hardly looks at it
        yield {"x": x}
"""


def planted(folder):
    """Conv, Relu, Conv, Conv, Add, Softmax: the first Conv loses what its input's scale rounds off."""
    generator = np.random.default_rng(2)
    kernels = [generator.standard_normal((4, 4, 3, 3)).astype(np.float32) / 6 for _ in range(3)]
    kernels[0][:, 0] /= 3000
    node = onnx.helper.make_node
    nodes = [
        node("Conv", ["x", "k0"], ["a"], "first", pads=[1, 1, 1, 1]),
        node("Relu", ["a"], ["b"], "relu"),
        node("Conv", ["b", "k1"], ["c"], "second", pads=[1, 1, 1, 1]),
        node("Conv", ["c", "k2"], ["d"], "third", pads=[1, 1, 1, 1]),
        node("Add", ["b", "d"], ["e"], "add"),
        node("Softmax", ["e"], ["y"], "softmax", axis=1),
    ]
    shape = ["n", 4, 6, 6]
    kernels_held = [weight(f"k{n}", each) for n, each in enumerate(kernels)]
    made = model(nodes, [value("x", shape)], [value("y", shape)], kernels_held)
    onnx.checker.check_model(made)
    folder.mkdir(parents=True)
    save_model(made, folder)
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the user's module, the prepared model and its calibration."""
    folder = tmp_path_factory.mktemp("planted")
    (folder / "user.py").write_text(USER)
    inputs = {"model": planted(folder / "source")}
    _, prepared = run_step(
        preprocess.KIND, preprocess.PreprocessParams(), folder / "preprocess", inputs
    )
    params = calibrate.CalibrateParams(
        Entrypoint(f"{folder}/user.py:data"), (IMAGE,), calibrate.CalibrationOptions(samples=6)
    )
    inputs = {"model": prepared.output("model")}
    _, calibrated = run_step(calibrate.KIND, params, folder / "calibrate", inputs)
    return folder, {**inputs, "calibration": calibrated.output("calibration")}


def options_of(**changes):
    changes = {"reduce_range": False, "activation_type": "uint8", **changes}
    return quantize_static.StaticOptions(**changes)


def measured(place, folder, options, **inputs):
    there, found = place
    params = sensitivity.SensitivityParams(
        data=Entrypoint(f"{there}/user.py:data"),
        project=None,
        inputs=(IMAGE,),
        axes=(),
        samples=6,
        static=quantize_static.scheme_of(options),
    )
    outcome, context = run_step(sensitivity.KIND, params, folder, {**found, **inputs})
    made = context.output("sensitivity")
    return outcome, json.loads((made / "report.json").read_text()), made


def quantized(place, folder, options, **inputs):
    params = quantize_static.StaticParams(options)
    outcome, context = run_step(quantize_static.KIND, params, folder, {**place[1], **inputs})
    return outcome, context.output("model")


def lost(place, target):
    """1 - mean cosine of the outputs of the data's samples."""
    scope = {}
    exec(USER, scope)
    cosines = []
    for feeds in scope["data"]():
        exact, low = (run_model(each, feeds)["y"] for each in (place[1]["model"], target))
        for a, b in zip(exact.reshape(2, -1), low.reshape(2, -1), strict=True):
            lengths = np.linalg.norm(a) * np.linalg.norm(b)
            cosines.append(a.astype(np.float64) @ b / lengths)
    return 1 - np.mean(cosines)


def alone(report, name):
    (found,) = (each for each in report["nodes"] if each["name"] == name)
    return 1 - found["cosine_mean"]


def test_the_conv_whose_input_is_rounded_off_comes_first(place, tmp_path):
    outcome, report, _ = measured(place, tmp_path, options_of())
    assert report["rounding"] == "static"
    assert outcome.metrics["most_sensitive"] == "first"
    assert {each["name"] for each in report["nodes"]} == {
        "first", "second", "third", "add", "softmax",
    }  # fmt: skip
    assert alone(report, "first") > 5 * alone(report, "second")


@pytest.mark.parametrize(
    "changes",
    [{}, {"symmetric": True}, {"weight_type": "uint8"}, {"reduce_range": "pairs"}],
    ids=str,
)
def test_it_says_what_the_static_quantizer_really_loses(place, tmp_path, changes):
    options = options_of(**changes)
    _, report, _ = measured(place, tmp_path / "s", options)
    _, whole = quantized(place, tmp_path / "all", options)
    assert 1 - report["all"]["cosine_mean"] == pytest.approx(lost(place, whole), rel=0.15)


@pytest.mark.parametrize("name", ["first", "third", "softmax"])  # the others share their input
def test_a_node_alone_loses_what_it_loses_alone_in_the_quantizer(place, tmp_path, name):
    _, report, _ = measured(place, tmp_path / "s", options_of())
    _, target = quantized(place, tmp_path / "q", options_of(nodes_to_include=(name,)))
    assert alone(report, name) == pytest.approx(lost(place, target), rel=0.02)


def test_nodes_that_are_kept_stay_out_of_the_pairs(place, tmp_path):
    *_, made = measured(place, tmp_path / "s", options_of())
    kept = options_of(keep_most_sensitive=0.2)
    outcome, target = quantized(place, tmp_path / "q", kept, sensitivity=made)
    assert outcome.metrics["kept_in_fp32"] == ["first"]
    held = onnx.load(target / "model.onnx")
    (first,) = (each for each in held.graph.node if each.name == "first")
    assert first.input[0] == "x"
    assert "k0" in first.input[1]
    assert any(each.name == "k0" for each in held.graph.initializer)
    _, whole = quantized(place, tmp_path / "all", options_of())
    assert lost(place, target) < lost(place, whole) / 4


def test_op_types_that_are_not_quantized_are_not_measured(place, tmp_path):
    _, report, _ = measured(place, tmp_path, options_of(op_types=("Conv",)))
    assert {each["name"] for each in report["nodes"]} == {"first", "second", "third"}


def test_what_touches_a_mask_is_not_measured_and_nothing_left_is_an_error(place, tmp_path):
    ranges = json.loads((place[1]["calibration"] / "ranges.json").read_text())
    for unbounded, folder in ((["x"], "one"), (list(ranges["ranges"]), "all")):
        (tmp_path / folder).mkdir()
        held = {**ranges, "unbounded": unbounded}
        (tmp_path / folder / "ranges.json").write_text(json.dumps(held))
    _, report, _ = measured(place, tmp_path / "a", options_of(), calibration=tmp_path / "one")
    assert "first" not in {each["name"] for each in report["nodes"]}
    with pytest.raises(StepError, match="no node has calibrated ranges") as caught:
        measured(place, tmp_path / "b", options_of(), calibration=tmp_path / "all")
    assert caught.value.fix


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("kind", ["uint8", "int8", "uint16", "int16"])
def test_scales_and_zero_points_are_onnxruntimes(kind, symmetric):
    from onnxruntime.quantization.quant_utils import compute_scale_zp, get_qmin_qmax_for_qType

    from onnxbuild.onnxkit.quantize.common import quant_type

    least, most = get_qmin_qmax_for_qType(quant_type(kind).tensor_type, False, symmetric)
    for low, high in ((-1.5, 4.0), (0.5, 3.0), (-2.0, -1.0), (0.0, 0.0)):
        pair = np.float32(low), np.float32(high)
        zero, scale = compute_scale_zp(*map(np.array, pair), least, most, symmetric)
        found = grid_step(*map(np.asarray, pair), kind, symmetric=symmetric)
        assert found.scale == pytest.approx(float(scale), rel=1e-6)
        assert (found.low, found.high) == (float(least) - float(zero), float(most) - float(zero))
