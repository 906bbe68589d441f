import itertools

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxbuild.onnxkit.saturation.replay import MOST_ROWS, lost_in_pairs, replay
from onnxbuild.onnxkit.saturation.saturation import saturating_nodes, saturation_notes
from tests.onnxkit.models import model, value, weight


def quantized(kind, weights, **attributes):
    """One node whose weights come through a DequantizeLinear."""
    helper = onnx.helper
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "scale"], ["w"], name="weights"),
        helper.make_node(kind, ["x", "w"], ["y"], name="node", **attributes),
    ]
    return model(
        nodes,
        [value("x", None)],
        [value("y", None)],
        [weight("q", weights), weight("scale", np.float32(0.1))],
    )


@pytest.mark.parametrize(
    ("weights", "overflows"),
    [
        ([[100], [29]], True),
        ([[-100], [-29]], True),
        ([[127], [-128]], False),
        ([[0], [100], [100], [0]], False),
        ([[127]], False),
    ],
)
def test_neighbours_along_the_summed_axis_count(weights, overflows):
    assert bool(saturating_nodes(quantized("MatMul", np.int8(weights)))) == overflows


def test_a_transposed_gemm_is_summed_along_its_other_axis():
    weights = np.int8([[100, 100, 0, 0]])
    assert saturating_nodes(quantized("Gemm", weights, transB=1)) == ("node",)
    assert saturating_nodes(quantized("Gemm", weights.T)) == ("node",)
    assert saturating_nodes(quantized("Gemm", weights)) == ()


def test_a_convolution_is_summed_channels_last():
    kernel = np.zeros((1, 2, 1, 2), np.int8)
    kernel[0, :, 0, 0] = 100  # both channels of one place
    assert saturating_nodes(quantized("Conv", kernel)) == ("node",)
    kernel = np.zeros((1, 2, 1, 2), np.int8)
    kernel[0, 0, 0, :] = 100  # one channel of both places
    assert saturating_nodes(quantized("Conv", kernel)) == ()


def test_a_convolution_of_one_channel_each_is_widened_before_it_adds():
    kernel = np.full((2, 1, 2, 2), 127, np.int8)
    assert saturating_nodes(quantized("Conv", kernel, group=2)) == ()
    assert saturating_nodes(quantized("Conv", kernel)) == ("node",)  # two outputs of one channel


def test_a_stack_of_matrices_is_looked_at_one_by_one():
    stack = np.zeros((3, 4, 2), np.int8)
    assert saturating_nodes(quantized("MatMul", stack)) == ()
    stack[2, 2:, 1] = 100
    assert saturating_nodes(quantized("MatMul", stack)) == ("node",)


def test_unsigned_weights_never_overflow():
    assert saturating_nodes(quantized("MatMul", np.full((4, 1), 255, np.uint8))) == ()


def test_a_note_has_a_fix_that_helps_each_of_its_nodes():
    own, given = saturation_notes(["a", "b", "c"], {"b"})
    assert own.startswith("the sums of 2 nodes ")
    assert "(a, ...): write `reduce_range: auto`" in own
    assert given.startswith("the sums of 1 node ")
    assert "reduce_range" not in given
    assert saturation_notes([], {"b"}) == []


SCALE = np.float32(1.0)


def emulated(rows, columns):
    """(what saturation takes from each output, how many sums saturate), in plain Python."""
    lost = [[0] * len(columns[0]) for _ in rows]
    count = 0
    for (m, row), n in itertools.product(enumerate(rows), range(len(columns[0]))):
        for k in range(0, len(row), 2):
            total = sum(int(row[j]) * int(columns[j][n]) for j in range(k, min(k + 2, len(row))))
            kept = min(max(total, -(2**15)), 2**15 - 1)
            lost[m][n] += kept - total
            count += kept != total
    return np.array(lost), count


@pytest.mark.parametrize("summed", [1, 16])
def test_pairs_are_added_up_as_the_instruction_does(summed):
    draw = np.random.default_rng(summed)
    rows = draw.integers(0, 256, (9, summed))
    columns = draw.integers(-128, 128, (summed, 5)).astype(np.int8)
    expected, count = emulated(rows, columns)
    lost, found = lost_in_pairs(rows.astype(np.int32), columns)
    np.testing.assert_array_equal(lost, expected)
    assert found == count
    assert summed < 7 or count > 0


def test_no_weight_of_7_bits_saturates():
    rows = np.full((3, 8), 255, np.int32)
    columns = np.full((8, 4), 64, np.int8)
    lost, found = lost_in_pairs(rows, columns)
    assert (lost.any(), found) == (False, 0)
    assert lost_in_pairs(rows, columns * 0 + np.int8(65))[1] == 3 * 4 * 4


def qdq(kind, weights, shape, zero=0, signed=False, **attributes):
    """x -> QuantizeLinear -> DequantizeLinear -> a node with quantized weights."""
    kept = np.int8 if signed else np.uint8
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "one", "zero"], ["q"], name="quantize"),
        helper.make_node("DequantizeLinear", ["q", "one", "zero"], ["d"], name="dequantize"),
        helper.make_node("DequantizeLinear", ["w", "scale"], ["dw"], name="weights"),
        helper.make_node(kind, ["d", "dw"], ["y"], name="node", **attributes),
    ]
    constants = {"one": SCALE, "zero": kept(zero), "w": weights, "scale": np.float32(0.5)}
    return model(
        nodes,
        [value("x", shape)],
        [value("y", None)],
        [weight(name, np.asarray(each)) for name, each in constants.items()],
    )


def replayed(made, folder, *samples):
    found, count = replay(made, [{"x": x} for x in samples], scratch=folder, where="test")
    assert count == (len(samples) if found else 0)
    return found


def test_a_planted_matmul_is_found_and_weights_of_7_bits_clear_it(tmp_path):
    weights = np.array([[127, 1], [127, 1], [1, 1]], np.int8)
    x = np.array([[200, 200, 0], [0, 255, 255], [1, 1, 1]], np.float32)
    (found,) = replayed(qdq("MatMul", weights, ["n", 3]), tmp_path, x)
    assert (found.node, found.sums, found.saturated) == ("node", 3 * 2 * 2, 1)
    assert found.share == pytest.approx(1 / 12)
    noise = (200 * 127 * 2 - 32767) ** 2
    assert found.noise == pytest.approx(noise / 4)
    assert found.sqnr_db == pytest.approx(
        10 * np.log10(np.square(x.astype(float) @ weights).sum() / noise)
    )
    assert replayed(qdq("MatMul", weights // 2, ["n", 3]), tmp_path / "reduced", x) == ()


def test_signed_activations_are_moved_up_as_the_kernels_want_them(tmp_path):
    weights = np.array([[127], [127]], np.int8)
    x = np.array([[0, 0], [2, 2]], np.float32)  # 0 and 2 are 128 and 130 there
    (found,) = replayed(qdq("MatMul", weights, ["n", 2], signed=True), tmp_path, x)
    assert found.saturated == 1  # 2 * 128 * 127 = 32512 fits, 2 * 130 * 127 = 33020 does not
    assert found.signal == pytest.approx((4 * 127 * 0.5) ** 2)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 1], "pads": [1, 0, 1, 2]},
        {"dilations": [2, 1], "pads": [0, 1, 1, 0]},
        {"group": 2, "pads": [1, 1, 1, 1]},
    ],
)
def test_a_convolution_is_replayed_patch_by_patch(tmp_path, attributes):
    draw = np.random.default_rng(1)
    groups, zero = attributes.get("group", 1), 7
    weights = draw.integers(-128, 128, (4, 6 // groups, 2, 3)).astype(np.int8)
    x = draw.integers(0, 250, (2, 6, 5, 6)).astype(np.float32)
    made = qdq("Conv", weights, ["n", 6, 5, 6], zero=zero, **attributes)
    (found,) = replayed(made, tmp_path, x - zero)
    count = sums = 0
    strides, dilations = attributes.get("strides", [1, 1]), attributes.get("dilations", [1, 1])
    top, left, bottom, right = attributes.get("pads", [0] * 4)
    padded = np.pad(
        x, [(0, 0), (0, 0), (top, bottom), (left, right)], constant_values=zero
    ).astype(int)
    high = padded.shape[2] - dilations[0] * 1
    wide = padded.shape[3] - dilations[1] * 2
    for group in range(groups):
        channels = padded[:, group * 6 // groups : (group + 1) * 6 // groups]
        kernel = weights[group * 4 // groups : (group + 1) * 4 // groups]
        columns = [
            [int(w[c, i, j]) for w in kernel]
            for i in range(2) for j in range(3) for c in range(6 // groups)
        ]  # fmt: skip
        rows = [
            [
                channels[b, c, y + i * dilations[0], z + j * dilations[1]]
                for i in range(2) for j in range(3) for c in range(6 // groups)
            ]
            for b in range(2)
            for y in range(0, high, strides[0])
            for z in range(0, wide, strides[1])
        ]  # fmt: skip
        assert len(rows) <= MOST_ROWS
        count += emulated(rows, columns)[1]
        sums += len(rows) * -(-len(columns) // 2) * len(kernel)
    assert (found.sums, found.saturated) == (sums, count)
    assert count > 0


def test_one_channel_with_several_outputs_is_replayed_and_depthwise_is_not(tmp_path):
    weights = np.full((2, 1, 1, 2), 127, np.int8)
    x = np.full((1, 1, 1, 2), 255, np.float32)
    (found,) = replayed(qdq("Conv", weights, ["n", 1, 1, 2]), tmp_path / "two", x)
    assert (found.sums, found.saturated) == (2, 2)
    pair = np.concatenate([x, x], axis=1)
    depthwise = qdq("Conv", weights, ["n", 2, 1, 2], group=2)
    assert replayed(depthwise, tmp_path / "depthwise", pair) == ()


def test_integer_operators_of_dynamic_quantization_are_replayed(tmp_path):
    weights = np.array([[127, 1], [127, 1]], np.int8)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"], name="quantize"),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["y"], name="node"),
    ]
    output = helper.make_tensor_value_info("y", onnx.TensorProto.INT32, None)
    made = model(nodes, [value("x", ["n", 2])], [output], [weight("w", weights)])
    x = np.array([[0.0, 1.0], [1.0, 1.0], [0.25, 0.25]], np.float32)
    (found,) = replayed(made, tmp_path, x, x[:1])
    assert found.saturated == 1  # 255 and 255 in the first sample's second row
    assert found.sums == 4 * 1 * 2
