import contextlib
import json

import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.onnxkit.saturation.saturation import saturating_nodes
from onnxbuild.steps import calibrate, preprocess
from onnxbuild.steps.quantize_static import KIND, StaticOptions, StaticParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear, model, value, weight
from tests.steps.graphs import DIGITS, digits, digits_module, interface, run_model, save

IMAGE = DummyInput("image", "float32", ("batch", 1, 8, 8))


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as a child runs a step


def prepared(source, folder):
    outcome, context = run_step(
        preprocess.KIND, preprocess.PreprocessParams(), folder / "preprocess", {"model": source}
    )
    return outcome, context.output("model")


def calibrated_digits(folder, samples=100):
    _, source = prepared(digits(folder / "source"), folder)
    options = calibrate.CalibrationOptions(samples=samples)
    params = calibrate.CalibrateParams(Entrypoint(f"{DIGITS}:calibration"), (IMAGE,), options)
    _, context = run_step(calibrate.KIND, params, folder / "calibrate", {"model": source})
    return source, context.output("calibration")


@pytest.fixture(scope="module")
def calibrated_once(tmp_path_factory):
    """The digits network, prepared, and its ranges."""
    folder = tmp_path_factory.mktemp("digits")
    with contextlib.chdir(folder):
        return calibrated_digits(folder)


def quantized(source, calibration, folder, **options):
    params = StaticParams(
        StaticOptions(**{"reduce_range": False, "activation_type": "uint8", **options})
    )
    inputs = {"model": source, "calibration": calibration}
    outcome, context = run_step(KIND, params, folder, inputs)
    return outcome, context.output("model")


def ranges(folder, bounds, unbounded=()):
    folder.mkdir()
    (folder / "ranges.json").write_text(
        json.dumps({"ranges": bounds, "unbounded": unbounded, "narrowest": {}})
    )
    return folder


def accuracy(folder):
    module = digits_module()
    feeds, labels = zip(*module.evaluation(), strict=True)
    return module.accuracy([run_model(folder, each) for each in feeds], labels)


def types_of(folder):
    model = onnx.load(folder / "model.onnx")
    return {each.name: each.data_type for each in model.graph.initializer}


def test_the_digits_network_keeps_its_accuracy_in_a_third_of_the_size(tmp_path):
    source, calibration = calibrated_digits(tmp_path)
    outcome, target = quantized(source, calibration, tmp_path / "step")
    assert outcome.metrics["quantized"]["Conv"] == 3
    assert outcome.metrics["quantized"]["Gemm"] == 2
    assert outcome.metrics["size_ratio"] < 0.4
    assert interface(target) == interface(source)
    assert accuracy(source) > 0.97
    assert accuracy(target) >= accuracy(source) - 0.01


def test_activations_are_uint8_or_symmetric_int8_as_asked(tmp_path):
    source, calibration = calibrated_digits(tmp_path, samples=20)
    _, target = quantized(source, calibration, tmp_path / "x86")
    assert types_of(target)["image_zero_point"] == onnx.TensorProto.UINT8
    _, target = quantized(source, calibration, tmp_path / "arm", activation_type="int8")
    made = {each.name: each for each in onnx.load(target / "model.onnx").graph.initializer}
    assert made["image_zero_point"].data_type == onnx.TensorProto.INT8
    assert int(onnx.numpy_helper.to_array(made["image_zero_point"])) == 0
    assert accuracy(target) > 0.95


@pytest.mark.parametrize("activations", ["uint8", "int8", "uint16", "int16"])
@pytest.mark.parametrize("weights", ["int8", "uint8"])
@pytest.mark.parametrize("symmetric", ["auto", True, False])
def test_each_pair_of_types_runs_and_keeps_the_accuracy(
    calibrated_once, tmp_path, activations, weights, symmetric
):
    source, calibration = calibrated_once
    _, target = quantized(
        source, calibration, tmp_path / "step",
        activation_type=activations, weight_type=weights, symmetric=symmetric,
    )  # fmt: skip
    made = {each.name: each for each in onnx.load(target / "model.onnx").graph.initializer}
    assert made["image_zero_point"].data_type == getattr(onnx.TensorProto, activations.upper())
    zero = int(onnx.numpy_helper.to_array(made["image_zero_point"]))
    centered = symmetric is True or (symmetric == "auto" and activations in {"int8", "int16"})
    assert (zero == {"uint8": 128, "uint16": 32768}.get(activations, 0)) == centered
    kinds = {each.data_type for name, each in made.items() if name.endswith("_quantized")}
    assert getattr(onnx.TensorProto, weights.upper()) in kinds
    assert accuracy(target) >= accuracy(source) - 0.005


def test_nodes_are_left_out_or_chosen_by_pattern(calibrated_once, tmp_path):
    source, calibration = calibrated_once
    kinds = {}
    for name, options in (
        ("without", {"nodes_to_exclude": ("*Gemm*",)}),
        ("alone", {"nodes_to_include": ("*Gemm*",)}),
    ):
        outcome, _ = quantized(source, calibration, tmp_path / name, **options)
        kinds[name] = outcome.metrics["quantized"]
    assert "Gemm" not in kinds["without"]
    assert kinds["without"]["Conv"] == 3
    assert kinds["alone"]["Gemm"] == 2
    assert "Conv" not in kinds["alone"]


def test_nodes_that_stay_in_fp32_behind_a_quantized_value_are_not_counted(tmp_path):
    made = model(
        [
            onnx.helper.make_node("MatMul", ["x", "w"], ["product"], name="multiply"),
            onnx.helper.make_node("Relu", ["product"], ["kept"], name="kept"),
            onnx.helper.make_node("Erf", ["product"], ["wide"], name="erf"),
            onnx.helper.make_node("Add", ["kept", "wide"], ["y"], name="add"),
        ],
        [value("x", ["batch", 4])],
        [value("y", ["batch", 3])],
        [weight("w", np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32))],
    )
    _, source = prepared(save(made, tmp_path / "source"), tmp_path)
    calibration = ranges(tmp_path / "ranges", {"x": [-1, 1], "product": [-2, 2]})
    outcome, _ = quantized(
        source, calibration, tmp_path / "step", nodes_to_exclude=("kept", "add")
    )
    assert outcome.metrics["quantized"] == {"MatMul": 1}


def test_values_that_are_masks_keep_their_nodes_in_fp32(tmp_path):
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["scores"], name="multiply"),
        onnx.helper.make_node("Where", ["keep", "scores", "never"], ["masked"], name="mask"),
        onnx.helper.make_node("Softmax", ["masked"], ["y"], name="softmax"),
    ]
    made = model(
        nodes,
        [value("x", ["batch", 4]), value("keep", ["batch", 3], onnx.TensorProto.BOOL)],
        [value("y", ["batch", 3])],
        [
            weight("w", np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)),
            weight("never", np.float32([-np.inf])),
        ],
    )
    _, source = prepared(save(made, tmp_path / "source"), tmp_path)
    bounds = {"x": [-1, 1], "scores": [-2, 2], "y": [0, 1]}
    calibration = ranges(tmp_path / "ranges", bounds, ["masked"])
    outcome, target = quantized(source, calibration, tmp_path / "step")
    assert outcome.metrics["quantized"]["MatMul"] == 1
    assert "Softmax" not in outcome.metrics["quantized"]
    assert outcome.notes == (
        "2 nodes stay in fp32, their values are masks without a usable range",
    )
    feeds = {"x": np.ones((1, 4), np.float32), "keep": np.array([[True, False, True]])}
    found = run_model(target, feeds)["y"]
    np.testing.assert_allclose(found, run_model(source, feeds)["y"], atol=0.02)


@pytest.mark.parametrize(
    ("options", "what", "fix"),
    [
        ({"nodes_to_exclude": ("clipp",)}, "node 'clipp'", "did you mean 'clip'?"),
        ({"nodes_to_include": ("*/ffn/*",)}, "'*/ffn/*' in `nodes_to_include` matches", "write a"),
        ({"op_types": ("Convv",)}, "'Convv' in `op_types`", "did you mean 'Conv'?"),
        ({"op_types": ("Conv",)}, "the operator type 'Conv', which the graph", "leave 'Conv' out"),
        ({"activation_type": "auto"}, "`activation_type` is still 'auto'", "this is a bug"),
        ({"nodes_to_exclude": ("multiply", "shift", "clip")}, "nothing was quantized", "see"),
    ],
)
def test_options_that_cannot_be_met_are_errors(tmp_path, options, what, fix):
    source = save(linear(), tmp_path / "source")
    bounds = {name: [-1, 1] for name in ("x", "xw", "sum", "y")}
    with pytest.raises(StepError) as caught:
        quantized(source, ranges(tmp_path / "ranges", bounds), tmp_path / "step", **options)
    assert what in caught.value.what
    assert caught.value.fix.startswith(fix)


def test_a_range_that_is_missing_is_an_error_that_names_the_value(tmp_path):
    source = save(linear(), tmp_path / "source")
    calibration = ranges(tmp_path / "ranges", {"x": [-1, 1]})
    with pytest.raises(StepError, match=r"ONNX Runtime's quantizer fails: .*xw"):
        quantized(source, calibration, tmp_path / "step", op_types=("MatMul",))


def test_preprocessing_folds_what_would_hide_scales(tmp_path):
    nodes = [
        onnx.helper.make_node("Identity", ["w"], ["same"], name="same"),
        onnx.helper.make_node("MatMul", ["x", "same"], ["y"], name="multiply"),
    ]
    made = model(
        nodes,
        [value("x", ["batch", 2])],
        [value("y", ["batch", 2])],
        [weight("w", np.eye(2, dtype=np.float32))],
    )
    source = save(made, tmp_path / "source")
    outcome, target = prepared(source, tmp_path)
    assert (outcome.metrics["nodes_before"], outcome.metrics["nodes_after"]) == (2, 1)
    assert outcome.notes == ()
    assert interface(target) == interface(source)


def _of_an_operator_that_it_does_not_know():
    return model(
        [onnx.helper.make_node("FusedConv", ["x", "w"], ["y"], domain="com.microsoft")],
        [value("x", ["batch", 1, 4, 4])],
        [value("y", ["batch", 1, 3, 3])],
        [weight("w", np.ones((1, 1, 2, 2), np.float32))],
        imports=[onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid("com.microsoft", 1)],
    )


def _of_a_range_in_halves():
    """It divides by int(0.5), and raises "ValueError: The argument 'zoo' is not comparable."."""
    nodes = [
        onnx.helper.make_node("Shape", ["x"], ["shape"]),
        onnx.helper.make_node("Squeeze", ["shape"], ["count"]),
        onnx.helper.make_node("Cast", ["count"], ["end"], to=onnx.TensorProto.FLOAT),
        onnx.helper.make_node("Range", ["begin", "end", "step"], ["y"]),
    ]
    numbers = {"begin": np.float32(0), "step": np.float32(0.5)}
    weights = [
        onnx.numpy_helper.from_array(np.array(each), name) for name, each in numbers.items()
    ]
    return model(nodes, [value("x", ["batch"])], [value("y", ["steps"])], weights)


@pytest.mark.parametrize("made", [_of_an_operator_that_it_does_not_know, _of_a_range_in_halves])
def test_preprocessing_says_when_symbols_can_t_be_followed_and_not_how_its_tool_failed(
    made, tmp_path, capfd, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # ONNX Runtime leaves its last state in the working folder
    outcome, _ = prepared(save(made(), tmp_path / "source"), tmp_path)
    (note,) = outcome.notes
    assert note == (
        "shapes with symbols stay unknown: ONNX Runtime's symbolic shape inference does not take "
        "this model (its error is in the step's log)"
    )
    assert "Traceback" in capfd.readouterr().err  # the log


def test_a_target_whose_sums_saturate_is_warned_of_unless_weights_have_seven_bits(
    calibrated_once, tmp_path
):
    source, calibration = calibrated_once
    inputs = {"model": source, "calibration": calibration}
    notes = {}
    for reduced in (False, True):
        options = StaticOptions(activation_type="uint8", reduce_range=reduced)
        params = StaticParams(options, sums_saturate=True)
        outcome, _ = run_step(KIND, params, tmp_path / str(reduced), inputs)
        notes[reduced] = outcome.notes
    assert notes[True] == ()
    (note,) = notes[False]
    assert note.startswith("the sums of 5 nodes can exceed 16 bits on the target")


def test_activations_of_16_bits_are_in_no_sum_that_could_saturate(calibrated_once, tmp_path):
    source, calibration = calibrated_once
    options = StaticOptions(activation_type="uint16", reduce_range=False)
    params = StaticParams(options, sums_saturate=True)
    inputs = {"model": source, "calibration": calibration}
    outcome, _ = run_step(KIND, params, tmp_path, inputs)
    assert outcome.notes == ()


def test_pairs_are_for_matrices_and_convolutions(calibrated_once, tmp_path):
    source, calibration = calibrated_once
    found = {}
    for reduced in (True, "pairs"):
        options = StaticOptions(activation_type="uint8", reduce_range=reduced)
        params = StaticParams(options, sums_saturate=True)
        inputs = {"model": source, "calibration": calibration}
        outcome, context = run_step(KIND, params, tmp_path / str(reduced), inputs)
        assert outcome.notes == ()
        made = load_model(context.output("model"))
        assert saturating_nodes(made) == ()
        codes = [
            onnx.numpy_helper.to_array(each)
            for each in made.graph.initializer
            if each.data_type == onnx.TensorProto.INT8 and len(each.dims) > 1
        ]
        found[reduced] = {each.ndim: int(np.abs(each.astype(int)).max()) for each in codes}
        assert accuracy(context.output("model")) > 0.98
    assert found[True] == {2: 64, 4: 64}
    assert 64 < found["pairs"][4] <= 127
    assert 64 < found["pairs"][2] <= 127


def test_a_tied_embedding_is_looked_up_and_multiplied_with(tmp_path):
    """ONNX Runtime's quantizer gives the Gather's output a scale for each of the product's channels."""
    nodes = [
        onnx.helper.make_node("Gather", ["table", "at"], ["x"], name="look up"),
        onnx.helper.make_node("MatMul", ["x", "square"], ["h"], name="inner"),
        onnx.helper.make_node("MatMul", ["h", "table"], ["y"], name="outer"),
    ]
    draw = np.random.default_rng(0).standard_normal
    tensors = [
        weight("table", draw((6, 4)).astype(np.float32)),
        weight("square", draw((4, 6)).astype(np.float32)),
    ]
    at = value("at", ["batch", 3], onnx.TensorProto.INT64)
    made = model(nodes, [at], [value("y", ["batch", 3, 4])], tensors)
    source = save(made, tmp_path / "source")
    bounds = {"x": [-3, 3], "h": [-8, 8], "y": [-20, 20]}
    _, target = quantized(source, ranges(tmp_path / "ranges", bounds), tmp_path / "step")
    feeds = {"at": np.array([[0, 5, 2], [1, 3, 4]])}
    found, expected = (run_model(folder, feeds)["y"] for folder in (target, source))
    assert np.abs(found - expected).max() < 0.05 * np.abs(expected).max()


@pytest.mark.parametrize("constant", [True, False])
def test_a_gemms_factor_of_its_bias_is_kept(tmp_path, constant):
    """ONNX Runtime's quantizer sets beta to 1 and keeps the bias as it was."""
    node = onnx.helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="gemm", beta=3.0)
    follow = onnx.helper.make_node("MatMul", ["y", "v"], ["z"], name="multiply")
    w = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    tensors = [weight("w", w), weight("v", np.eye(3, dtype=np.float32))]
    tensors += [weight("b", np.float32([1, 2, 3]))] if constant else []
    inputs = [value("x", ["batch", 4])] + ([] if constant else [value("b", [3])])
    made = model([node, follow], inputs, [value("z", ["batch", 3])], tensors)
    source = save(made, tmp_path / "source")
    bounds = {"x": [-1, 1], "b": [1, 3], "y": [-12, 12], "z": [-12, 12]}
    outcome, target = quantized(source, ranges(tmp_path / "ranges", bounds), tmp_path / "step")
    assert outcome.metrics["quantized"].get("Gemm", 0) == constant
    feeds = {"x": np.float32([[1, -1, 0.5, 0]]), "b": np.float32([1, 2, 3])}
    feeds = {each.name: feeds[each.name] for each in inputs}
    found, expected = (run_model(folder, feeds)["z"] for folder in (target, source))
    np.testing.assert_allclose(found, expected, atol=0.25)


@pytest.mark.parametrize(("groups", "per_group"), [(1, 6), (2, 6), (8, 1)])
@pytest.mark.parametrize("per_channel", [True, False])
def test_a_transposed_convolution_in_groups_keeps_its_bias(
    tmp_path, groups, per_group, per_channel
):
    generator = np.random.default_rng(0)
    w = generator.standard_normal((8, per_group, 3, 3), dtype=np.float32)
    outputs = groups * per_group
    bias = np.linspace(-40, 40, outputs, dtype=np.float32)  # a wrong scale would be seen
    node = onnx.helper.make_node(
        "ConvTranspose", ["x", "w", "b"], ["y"], "up", group=groups, strides=[2, 2]
    )
    shapes = ["n", 8, 5, 5], ["n", outputs, 11, 11]
    weights = [weight("w", w), weight("b", bias)]
    made = model([node], [value("x", shapes[0])], [value("y", shapes[1])], weights)
    source = save(made, tmp_path / "source")
    feeds = {"x": generator.standard_normal((2, 8, 5, 5), dtype=np.float32)}
    expected = run_model(source, feeds)["y"]
    bounds = {"x": [-5, 5], "y": [float(expected.min()), float(expected.max())]}
    calibration = ranges(tmp_path / "ranges", bounds)
    _, target = quantized(source, calibration, tmp_path / "step", per_channel=per_channel)
    found = run_model(target, feeds)["y"]
    np.testing.assert_allclose(found, expected, atol=np.ptp(expected) / 100)
    held = {each.name: each for each in onnx.load(target / "model.onnx").graph.initializer}
    assert list(held["b_quantized"].dims) == [outputs]
    assert held["b_quantized"].data_type == onnx.TensorProto.INT32


def test_a_large_bias_of_a_later_group_widens_the_scale_that_groups_share(tmp_path):
    w = np.full((2, 1, 1, 1), 1e-6, np.float32)
    bias = np.float32([0, 5e3])  # beyond 32 bits in steps of 5 / 255 * 1e-6 / 127
    node = onnx.helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], "up", group=2)
    shapes = ["n", 2, 3, 3]
    weights = [weight("w", w), weight("b", bias)]
    made = model([node], [value("x", shapes)], [value("y", shapes)], weights)
    source = save(made, tmp_path / "source")
    calibration = ranges(tmp_path / "ranges", {"x": [0, 5], "y": [0, 5e3]})
    _, target = quantized(source, calibration, tmp_path / "step")
    found = run_model(target, {"x": np.ones((1, 2, 3, 3), np.float32)})["y"]
    np.testing.assert_allclose(found[:, 1], 5e3, rtol=0.01)


@pytest.mark.parametrize("shape", [(8,), (1, 8), (1,), (), (4, 8), (4, 1)])
@pytest.mark.parametrize("beta", [1.0, 0.5])
def test_a_gemms_bias_of_any_shape_is_kept(tmp_path, shape, beta):
    generator = np.random.default_rng(0)
    w = generator.standard_normal((16, 8), dtype=np.float32)
    bias = 20 * generator.standard_normal(shape, dtype=np.float32)
    nodes = [
        onnx.helper.make_node("Gemm", ["x", "w", "b"], ["h"], "gemm", beta=beta),
        onnx.helper.make_node("MatMul", ["h", "v"], ["y"], "last"),
    ]
    v = np.eye(8, dtype=np.float32)
    weights = [weight("w", w), weight("b", np.asarray(bias)), weight("v", v)]
    made = model(nodes, [value("x", [4, 16])], [value("y", [4, 8])], weights)
    source = save(made, tmp_path / "source")
    feeds = {"x": generator.standard_normal((4, 16), dtype=np.float32)}
    expected = run_model(source, feeds)["y"]
    widest = float(np.abs(expected).max())
    bounds = {"x": [-4, 4], "h": [-widest, widest], "y": [-widest, widest]}
    calibration = ranges(tmp_path / "ranges", bounds)
    outcome, target = quantized(source, calibration, tmp_path / "step")
    np.testing.assert_allclose(run_model(target, feeds)["y"], expected, atol=widest / 40)
    by_row = shape in {(4, 8), (4, 1)}
    assert outcome.metrics["quantized"].get("Gemm", 0) == (0 if by_row else 1)


def test_a_bias_far_above_its_channels_weights_keeps_its_value_with_unsigned_weights(tmp_path):
    """A batch normalization that shuts a channel off leaves such a bias: 32 bits are too few at its scale."""
    weights = np.random.default_rng(0).standard_normal((3, 2, 3, 3)).astype(np.float32)
    weights[1] *= 1e-9
    made = model(
        [onnx.helper.make_node("Conv", ["x", "w", "b"], ["y"], name="conv")],
        [value("x", ["n", 2, 5, 5])],
        [value("y", ["n", 3, 3, 3])],
        [weight("w", weights), weight("b", np.array([0.5, 7, -0.5], np.float32))],
    )
    source = save(made, tmp_path / "source")
    calibration = ranges(tmp_path / "calibration", {"x": [-1.0, 1.0], "y": [-8.0, 8.0]})
    feeds = {"x": np.random.default_rng(1).uniform(-1, 1, (2, 2, 5, 5)).astype(np.float32)}
    expected = run_model(source, feeds)["y"]
    for per_channel in (True, False):
        _, target = quantized(
            source,
            calibration,
            tmp_path / f"{per_channel}",
            weight_type="uint8",
            per_channel=per_channel,
        )
        found = run_model(target, feeds)["y"]
        assert np.abs(found - np.clip(expected, -8, 8)).max() < 0.3


@pytest.mark.parametrize("weight_type", ["int8", "uint8"])
def test_a_constant_left_factor_gets_one_scale_which_is_all_that_its_kernel_takes(
    tmp_path, weight_type
):
    draw = np.random.default_rng(0).standard_normal
    made = model(
        [onnx.helper.make_node("MatMul", ["w", "x"], ["y"], name="mix")],
        [value("x", [16, "n"])],
        [value("y", [4, "n"])],
        [weight("w", draw((4, 16), dtype=np.float32))],
    )
    source = save(made, tmp_path / "source")
    calibration = ranges(tmp_path / "calibration", {"x": [-3.0, 3.0], "y": [-15.0, 15.0]})
    _, target = quantized(source, calibration, tmp_path / "step", weight_type=weight_type)
    scales = {t.name: list(t.dims) for t in onnx.load(target / "model.onnx").graph.initializer}
    assert scales["w_scale"] == []
    feeds = {"x": draw((16, 5)).clip(-3, 3).astype(np.float32)}
    expected = run_model(source, feeds)["y"]
    assert np.abs(run_model(target, feeds)["y"] - expected).max() < 0.3
