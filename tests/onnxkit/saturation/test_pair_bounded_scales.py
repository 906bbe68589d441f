import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxbuild.onnxkit.quantize.gptq import compensating_factor, round_compensated
from onnxbuild.onnxkit.saturation.pair_bounded_scales import (
    bounding_scales,
    deciding_codes,
    pair_overrides,
    pair_scales,
)
from onnxbuild.onnxkit.saturation.saturation import may_saturate, saturating_nodes
from onnxbuild.onnxkit.sessions.open import open_session
from tests.examples import examples
from tests.onnxkit.models import model, value, weight
from tests.steps.graphs import run_model, save


@st.composite
def matrices(draw):
    """Tails of many weights, repeated values, zeros, and single columns."""
    rows, columns = draw(st.integers(1, 9)), draw(st.integers(1, 5))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    made = random.standard_normal((rows, columns)) ** draw(st.sampled_from([1, 3, 5]))
    made = np.round(made, draw(st.sampled_from([0, 1, 7]))) * 10.0 ** draw(st.integers(-30, 30))
    return made.astype(np.float32)


def greatest_sums(codes):
    """Of neighbours of one sign, as a magnitude, counted one by one."""
    found = 0
    for column in codes.T.astype(int).tolist():
        for at in range(0, len(column) - 1, 2):
            first, second = column[at : at + 2]
            if first * second > 0:
                found = max(found, abs(first + second))
    return found


@pytest.mark.sampled
@given(matrices(), st.booleans())
@settings(max_examples=examples(300))
def test_no_two_neighbours_leave_16_bits_and_steps_are_finer_than_those_of_7(matrix, per_channel):
    scales = pair_scales(matrix, per_channel=per_channel)
    assert scales.dtype == np.float32
    assert scales.shape == ((matrix.shape[1],) if per_channel else (1,))
    codes = np.rint(matrix / scales)
    assert np.abs(codes).max() <= 127
    assert greatest_sums(codes) <= 128
    assert not may_saturate(codes)
    of_seven_bits = np.abs(matrix).max(axis=0 if per_channel else None, keepdims=True)[0] / 64
    tiny = np.finfo(np.float32).tiny * 64
    assert (scales <= np.where(of_seven_bits <= tiny, 1, of_seven_bits * 1.008)).all()


@pytest.mark.sampled
@given(matrices(), st.booleans())
@settings(max_examples=examples(200))
def test_the_codes_that_decide_a_scale_bring_it_back(matrix, per_channel):
    scales = bounding_scales(matrix, per_channel=per_channel)
    given_codes = deciding_codes(matrix, scales)
    assert (np.abs(given_codes - matrix / scales.astype(np.float64))[given_codes != 0] <= 1).all()
    held = (given_codes * scales.astype(np.float64)).astype(np.float32)
    decided = np.abs(held).max(axis=0 if per_channel else None) > 0
    again = bounding_scales(held, per_channel=per_channel)
    np.testing.assert_allclose(again[decided], scales[decided], rtol=1e-6)


@pytest.mark.parametrize("inputs", [150, 151])
@pytest.mark.parametrize("per_channel", [True, False])
def test_compensated_weights_come_back_from_the_quantizers_scales(inputs, per_channel):
    draw = np.random.default_rng(0).standard_normal
    x = draw((400, inputs)) @ (draw((inputs, inputs)) / 8 + np.eye(inputs))
    matrix = (draw((inputs, 20)) ** 3).astype(np.float32)
    matrix[:, 0] = 0
    order, factor = compensating_factor(x.T @ x)
    found = round_compensated(matrix, order, factor, per_channel=per_channel, pairs=True)
    scales = pair_scales(found, per_channel=per_channel)
    codes = np.rint(found / scales)
    np.testing.assert_allclose(codes * scales, found, rtol=1e-6)
    assert not may_saturate(codes)
    nearest = np.rint(matrix / pair_scales(matrix, per_channel=per_channel))
    nearest = nearest * pair_scales(matrix, per_channel=per_channel)
    seven = round_compensated(matrix, order, factor, levels=64, per_channel=per_channel)
    lost = [np.abs(x @ (each - matrix)).mean() for each in (found, nearest, seven)]
    assert lost[0] < 0.8 * lost[1]
    assert lost[0] < 0.8 * lost[2]


@pytest.mark.parametrize("rows", [1, 2, 5, 32])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 3), (5, 17), (384, 16), (1030, 100)])
def test_this_cpu_adds_them_up_exactly(tmp_path, rows, inputs, outputs):
    """What the module claims, on whatever CPU the suite runs: only those without VNNI can fail it."""
    random = np.random.default_rng(inputs)
    matrix = random.standard_normal((inputs, outputs)) ** 3
    drawn = np.rint(matrix / pair_scales(matrix, per_channel=True))
    first = random.integers(1, 128, ((inputs + 1) // 2, outputs))
    signs = random.choice([-1, 1], first.shape)
    extreme = np.stack([first * signs, (128 - first) * signs], axis=1).reshape(-1, outputs)
    for codes in (drawn.astype(np.int8), extreme[:inputs].astype(np.int8)):
        node = onnx.helper.make_node("MatMulInteger", ["a", "b"], ["y"])
        made = model(
            [node],
            [value("a", [rows, inputs], onnx.TensorProto.UINT8)],
            [value("y", [rows, outputs], onnx.TensorProto.INT32)],
            [weight("b", codes)],
        )
        full = np.full((rows, inputs), 255, np.uint8)
        folder = save(made, tmp_path / f"model-{codes.sum()}")
        found = run_model(folder, {"a": full})["y"]
        np.testing.assert_array_equal(found, full.astype(int) @ codes.astype(int))


def test_a_matrix_that_something_else_reads_gets_what_all_else_gets():
    table = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    nodes = [
        onnx.helper.make_node("Gather", ["table", "at"], ["x"], name="look up"),
        onnx.helper.make_node("MatMul", ["x", "inner"], ["h"], name="inner"),
        onnx.helper.make_node("Gemm", ["h", "table"], ["y"], name="outer", transB=1),
    ]
    made = model(
        nodes,
        [value("at", ["batch"], onnx.TensorProto.INT64)],
        [value("y", ["batch", 6])],
        [weight("table", table), weight("inner", table[:4])],
    )
    (reported,) = pair_overrides(made, per_channel=True, dynamic=False).items()
    assert reported[0] == "inner"
    assert [each["axis"] for each in reported[1]] == [1] * 4
    made.graph.node[2].input[1] = "own"
    made.graph.initializer.append(weight("own", table))
    reported = pair_overrides(made, per_channel=True, dynamic=False)["own"]
    assert [each["axis"] for each in reported] == [0] * 6


def convolution(codes, image, *, groups, signed, per_channel, steps):
    """x -> QuantizeLinear -> Conv with these weights -> QuantizeLinear, all of scale 1 but the last."""
    node = onnx.helper.make_node
    kept = np.int8 if signed else np.uint8
    outputs, low = len(codes), kept(np.iinfo(kept).min)
    each = np.ones(outputs, np.float32) if per_channel else np.float32(1)
    nodes = [
        node("QuantizeLinear", ["x", "one", "low"], ["q"]),
        node("DequantizeLinear", ["q", "one", "low"], ["d"]),
        node("DequantizeLinear", ["w", "scales"], ["k"], axis=0),
        node("Conv", ["d", "k"], ["c"], group=groups),
        node("QuantizeLinear", ["c", "steps", "low"], ["r"]),
        node("DequantizeLinear", ["r", "steps", "low"], ["y"]),
    ]
    constants = {"one": np.float32(1), "low": low, "w": codes, "scales": each, "steps": steps}
    held = [weight(name, np.asarray(array)) for name, array in constants.items()]
    return model(nodes, [value("x", list(image))], [value("y", None)], held)


CONVOLUTIONS = [
    # groups, channels and outputs a group, kernel: by im2col, or by places where 4 divides channels
    *[(1, channels, 16, (3, 3)) for channels in (1, 3, 4, 6, 8, 32)],
    *[(1, channels, 24, (1, 1)) for channels in (3, 4, 64)],
    (1, 4, 5, (3, 3)),
    (1, 1030, 16, (1, 1)),
    (2, 3, 4, (3, 3)),
    (4, 8, 16, (1, 1)),
    (1, 6, 16, (3,)),
    (2, 1, 4, (2, 2, 2)),
    (1, 1, 1, (3, 3)),  # each output its own channel: nothing is added up in 16 bits
    (3, 1, 1, (3, 3)),
    (32, 1, 1, (3, 3)),
]


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("shape", CONVOLUTIONS, ids=str)
def test_this_cpu_adds_up_convolutions_exactly(tmp_path, shape, signed):
    """Their neighbours are the innermost channels: only a CPU without VNNI can fail it."""
    groups, channels, outputs, kernel = shape
    random = np.random.default_rng(channels)
    summed = channels * int(np.prod(kernel))
    first = random.integers(1, 128, (groups * outputs, (summed + 1) // 2))
    columns = np.stack([first, 128 - first], axis=-1).reshape(len(first), -1)[:, :summed]
    if (channels, outputs) == (1, 1):
        columns = np.full_like(columns, 127)
    columns = columns.astype(np.int8)
    codes = np.moveaxis(columns.reshape(-1, *kernel, channels), -1, 1)
    image = (1, groups * channels, *[5] * len(kernel))
    exact = 255.0 * columns.sum(axis=1, dtype=int)
    for per_channel in (True, False):
        steps = np.float32(exact.max() / 255)
        made = convolution(
            codes, image, groups=groups, signed=signed, per_channel=per_channel, steps=steps
        )
        session = open_session(save(made, tmp_path / str(per_channel)))
        found = session.run(None, {"x": np.full(image, 255, np.float32)})[0]
        lost = np.abs(found.reshape(len(exact), -1) - exact[:, None]).max()
        assert lost <= 0.51 * steps
    assert saturating_nodes(made) == ()


def test_a_convolutions_scales_bound_its_innermost_channels():
    random = np.random.default_rng(0)
    kernel = (random.standard_normal((6, 5, 3, 3)) ** 3).astype(np.float32)
    alone = (random.standard_normal((5, 1, 3, 3)) ** 3).astype(np.float32)
    nodes = [
        onnx.helper.make_node("Conv", ["x", "alone"], ["h"], name="alone", group=5),
        onnx.helper.make_node("Conv", ["h", "kernel"], ["y"], name="all"),
    ]
    made = model(
        nodes,
        [value("x", ["batch", 5, 9, 9])],
        [value("y", ["batch", 6, 5, 5])],
        [weight("alone", alone), weight("kernel", kernel)],
    )
    for per_channel in (True, False):
        reported = pair_overrides(made, per_channel=per_channel, dynamic=False)
        scales = {
            name: np.array([each["scale"] for each in found]) for name, found in reported.items()
        }
        codes = {
            name: np.rint(array / scales[name].reshape(-1, 1, 1, 1))
            for name, array in (("alone", alone), ("kernel", kernel))
        }
        flat = np.moveaxis(codes["kernel"], 1, -1).reshape(6, -1).T
        assert greatest_sums(flat) <= 128
        assert np.abs(codes["kernel"]).max() > 64
        assert np.abs(codes["alone"]).max() == 127  # nothing adds those up
        assert {each.get("axis") for each in reported["kernel"]} == {0 if per_channel else None}
    reported = pair_overrides(made, per_channel=True, dynamic=True)
    whole = np.abs(kernel).max() / 127
    assert [each["scale"] for each in reported["kernel"]] == pytest.approx([whole])
    assert "axis" not in reported["kernel"][0]
