import json

import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.steps.quantize_weights import KIND, WeightOptions, WeightParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear, model, value, weight
from tests.steps.graphs import digits, interface, operators, run_model, save, sentences, tiny_bert
from tests.steps.test_quantize_dynamic import cosine, weights_of


def quantized(source, folder, **options):
    params = WeightParams(WeightOptions(**options))
    outcome, context = run_step(KIND, params, folder, {"model": source})
    return outcome, context.output("model")


def gemm(folder, **attributes):
    """y = x w + b, w transposed where the attributes say so."""
    generator = np.random.default_rng(0)
    shape = (8, 64) if attributes.get("transB") else (64, 8)
    nodes = [onnx.helper.make_node("Gemm", ["x", "w", "b"], ["y"], name="dense", **attributes)]
    weights = [
        weight("w", generator.standard_normal(shape, dtype=np.float32)),
        weight("b", generator.standard_normal(8, dtype=np.float32)),
    ]
    return save(model(nodes, [value("x", ["n", 64])], [value("y", ["n", 8])], weights), folder)


def batch(columns=64):
    generator = np.random.default_rng(1)
    return {"x": generator.standard_normal((4, columns), dtype=np.float32)}


@pytest.mark.parametrize(
    ("options", "least"),
    [
        ({"bits": 8}, 0.9999),
        ({}, 0.99),
        ({"method": "hqq"}, 0.99),
        ({"scales_dtype": "float16"}, 0.99),
    ],
)
def test_a_bert_keeps_its_interface_and_comes_close(tmp_path, options, least):
    source = tiny_bert(tmp_path / "source")
    outcome, target = quantized(source, tmp_path / "step", **options)
    assert outcome.metrics["quantized"] == {"MatMul": 12}
    assert operators(target)["MatMulNBits"] == 12
    assert interface(target) == interface(source)
    expected = run_model(source, sentences())["hidden"]
    assert cosine(run_model(target, sentences())["hidden"], expected) > least


def test_four_bits_take_an_eighth_of_the_weights_place_and_their_scales(tmp_path):
    source = save(linear(rows=512, columns=256), tmp_path / "source")
    outcome, _ = quantized(source, tmp_path / "step", block_size=128, symmetric=True)
    assert outcome.metrics["size_ratio"] == pytest.approx(1 / 8 + 1 / 128, abs=0.01)
    assert outcome.metrics["weights_sqnr_db"] > 15


@pytest.mark.parametrize(
    ("factor", "dtype"), [(1, np.float16), (1e6, np.float32), (1e-6, np.float32)]
)
def test_scales_are_of_half_precision_where_they_fit(tmp_path, factor, dtype):
    made = linear(rows=64, columns=32)
    rows = onnx.numpy_helper.to_array(made.graph.initializer[0]) * np.float32(factor)
    made.graph.initializer[0].CopyFrom(weight("w", rows))
    source = save(made, tmp_path / "source")
    _, target = quantized(source, tmp_path / "step", scales_dtype="float16", accuracy_level=0)
    assert onnx.numpy_helper.to_array(weights_of(target)["w_scales"]).dtype == dtype
    expected, found = (run_model(each, batch())["y"] for each in (source, target))
    assert cosine(found, expected) > 0.98


def test_rows_of_embeddings_are_quantized_where_the_recipe_says_so(tmp_path):
    source = tiny_bert(tmp_path / "source")
    for bits in (4, 8):
        outcome, target = quantized(
            source, tmp_path / f"{bits}", bits=bits, block_size=16, op_types=("MatMul", "Gather")
        )
        assert outcome.metrics["quantized"] == {"Gather": 3, "MatMul": 12}
        assert operators(target)["GatherBlockQuantized"] == 3
        expected = run_model(source, sentences())["hidden"]
        assert cosine(run_model(target, sentences())["hidden"], expected) > 0.98


@pytest.mark.parametrize("attributes", [{}, {"alpha": 1.0, "beta": 1.0}])
def test_a_gemm_becomes_a_product_and_a_sum(tmp_path, attributes):
    source = gemm(tmp_path / "source", **attributes)
    outcome, target = quantized(source, tmp_path / "step", bits=8)
    assert outcome.metrics["quantized"] == {"Gemm": 1}
    assert operators(target) == {"MatMulNBits": 1, "Add": 1}
    expected = run_model(source, batch())["y"]
    np.testing.assert_allclose(run_model(target, batch())["y"], expected, atol=0.2)


@pytest.mark.parametrize("attributes", [{"alpha": 2.0}, {"transA": 1}])
def test_a_gemm_that_does_more_is_left_alone(tmp_path, attributes):
    source = gemm(tmp_path / "source", **attributes)
    with pytest.raises(StepError, match="nothing was quantized"):
        quantized(source, tmp_path / "step")


def test_a_weight_that_two_nodes_read_is_kept_once(tmp_path):
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="first"),
        onnx.helper.make_node("MatMul", ["y", "w"], ["z"], name="second"),
    ]
    w = weight("w", np.random.default_rng(0).standard_normal((64, 64), dtype=np.float32))
    made = model(nodes, [value("x", ["n", 64])], [value("z", ["n", 64])], [w])
    _, target = quantized(save(made, tmp_path / "source"), tmp_path / "step")
    assert set(weights_of(target)) == {"w_Q4", "w_scales", "w_zero_points"}


def tied(folder, *, turned, words=50, width=64):
    """Embeddings whose table is the head, too: turned in the graph, or stored a second time."""
    node = onnx.helper.make_node
    table = np.random.default_rng(0).standard_normal((words, width), dtype=np.float32)
    nodes = [node("Gather", ["table", "ids"], ["x"], name="embed")]
    weights = [weight("table", table)]
    if turned:
        nodes.append(node("Transpose", ["table"], ["head"], perm=[1, 0], name="turn"))
    else:
        weights.append(weight("head", np.ascontiguousarray(table.T)))
    nodes.append(node("MatMul", ["x", "head"], ["y"], name="multiply"))
    ids = value("ids", ["n"], onnx.TensorProto.INT64)
    return save(model(nodes, [ids], [value("y", ["n", words])], weights), folder)


@pytest.mark.parametrize("options", [{}, {"bits": 8}, {"method": "hqq"}, {"symmetric": True}])
@pytest.mark.parametrize("turned", [True, False])
def test_a_table_that_is_the_head_too_is_stored_once(tmp_path, turned, options):
    source = tied(tmp_path / "source", turned=turned)
    every = ("MatMul", "Gather")
    outcome, target = quantized(source, tmp_path / "step", op_types=every, **options)
    assert operators(target) == {"Reshape": 1, "GatherBlockQuantized": 1, "MatMulNBits": 1}
    bits = options.get("bits", 4)
    assert sum(name.endswith(f"_Q{bits}") for name in weights_of(target)) == 1
    assert outcome.metrics["size_bytes"] < 50 * 64 * bits / 8 + 50 * 2 * 5 + 1200
    feeds = {"ids": np.arange(50)}
    expected = run_model(source, feeds)["y"]
    assert cosine(run_model(target, feeds)["y"], expected) > 0.99


def test_a_head_that_is_turned_is_quantized_alone_where_the_table_stays(tmp_path):
    _, target = quantized(tied(tmp_path / "source", turned=True), tmp_path / "step")
    assert operators(target) == {"Gather": 1, "MatMulNBits": 1}


def test_a_table_whose_rows_end_within_a_block_is_stored_for_each(tmp_path):
    source = tied(tmp_path / "source", turned=False, width=48)
    _, target = quantized(source, tmp_path / "step", op_types=("MatMul", "Gather"))
    assert operators(target) == {"GatherBlockQuantized": 1, "MatMulNBits": 1}
    feeds = {"ids": np.arange(50)}
    found = run_model(target, feeds)["y"]
    assert cosine(found, run_model(source, feeds)["y"]) > 0.99


def bits_of(folder):
    found = {}
    for node in load_model(folder).graph.node:
        if node.op_type in {"MatMulNBits", "GatherBlockQuantized"}:
            found[node.name] = next(each.i for each in node.attribute if each.name == "bits")
    return found


def test_nodes_that_are_named_get_8_bits_and_a_tied_table_has_those_of_its_head(tmp_path):
    source = tied(tmp_path / "source", turned=False)
    every = ("MatMul", "Gather")
    outcome, target = quantized(
        source, tmp_path / "head", op_types=every, nodes_in_8_bits=("multi*",)
    )
    assert bits_of(target) == {"multiply": 8, "embed": 8}
    assert outcome.metrics["in_8_bits"] == ["multiply"]
    _, target = quantized(source, tmp_path / "table", op_types=every, nodes_in_8_bits=("embed",))
    assert bits_of(target) == {"multiply": 8, "embed": 8}


@pytest.mark.parametrize("method", ["rtn", "hqq"])
def test_nodes_that_match_a_pattern_get_8_bits(tmp_path, method):
    source = tiny_bert(tmp_path / "bert")
    _, target = quantized(source, tmp_path / "step", method=method, nodes_in_8_bits=("*query*",))
    found = bits_of(target)
    assert {name for name, bits in found.items() if bits == 8} == {
        name for name in found if "query" in name
    }


def test_what_loses_most_for_its_size_gets_8_bits(tmp_path):
    """`large` loses most, `small` most for its size; a share of a fifth has no room for the former."""
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "w"], ["a"], name="large"),
        onnx.helper.make_node("MatMul", ["a", "v"], ["b"], name="small"),
        onnx.helper.make_node("MatMul", ["b", "u"], ["y"], name="calm"),
    ]
    draw = np.random.default_rng(0).standard_normal
    shapes = {"w": (64, 64), "v": (64, 16), "u": (16, 64)}
    weights = [weight(n, draw(shape, dtype=np.float32)) for n, shape in shapes.items()]
    made = model(nodes, [value("x", ["n", 64])], [value("y", ["n", 64])], weights)
    source = save(made, tmp_path / "source")
    rows = [
        {"name": name, "measured": True, "drop": drop}
        for name, drop in (("large", 0.5), ("small", 0.4), ("calm", 0.1))
    ]
    (tmp_path / "sensitivity").mkdir()
    (tmp_path / "sensitivity/report.json").write_text(json.dumps({"nodes": rows}))
    for share, expected in (
        (0.2, ["small"]),
        (0.9, ["large", "small"]),
        (1.0, ["calm", "large", "small"]),
    ):
        params = WeightParams(WeightOptions(sensitive_in_8_bits=share))
        given = {"model": source, "sensitivity": tmp_path / "sensitivity"}
        outcome, context = run_step(KIND, params, tmp_path / str(share), given)
        assert outcome.metrics["in_8_bits"] == expected
        found = bits_of(context.output("model"))
        assert sorted(name for name, bits in found.items() if bits == 8) == expected


def test_nodes_named_stay_in_fp32(tmp_path):
    source = tiny_bert(tmp_path / "source")
    outcome, target = quantized(source, tmp_path / "step", nodes_to_exclude=("*query*",))
    assert outcome.metrics["quantized"] == {"MatMul": 10}
    assert [name for name in weights_of(target) if "query" in name and "Q4" in name] == []


def test_the_classifier_of_a_cnn_is_quantized_and_convolutions_stay(tmp_path):
    outcome, target = quantized(digits(tmp_path / "source"), tmp_path / "step")
    assert outcome.metrics["quantized"] == {"Gemm": 2}
    assert operators(target)["Conv"] == 3


@pytest.mark.parametrize(
    ("options", "what", "fix"),
    [
        ({"nodes_to_exclude": ("multiplyy",)}, "node 'multiplyy'", "did you mean 'multiply'?"),
        ({"nodes_to_exclude": ("mult*",)}, "nothing was quantized", "see `op_types`"),
    ],
)
def test_options_that_cannot_be_met_are_errors(tmp_path, options, what, fix):
    source = save(linear(), tmp_path / "source")
    with pytest.raises(StepError) as caught:
        quantized(source, tmp_path / "step", **options)
    assert what in caught.value.what
    assert caught.value.fix.startswith(fix)
    assert caught.value.where == "test:step"


def test_a_table_with_rows_of_odd_length_stays_in_fp32_where_two_elements_share_a_byte(tmp_path):
    nodes = [
        onnx.helper.make_node("Gather", ["table", "x"], ["row"], name="look_up"),
        onnx.helper.make_node("MatMul", ["row", "w"], ["y"], name="multiply"),
    ]
    draw = np.random.default_rng(0).standard_normal
    weights = [
        weight("table", draw((9, 21), dtype=np.float32)),
        weight("w", draw((21, 3), dtype=np.float32)),
    ]
    inputs = [value("x", ["n"], onnx.TensorProto.INT64)]
    source = save(model(nodes, inputs, [value("y", ["n", 3])], weights), tmp_path / "source")
    op_types = ("MatMul", "Gather")
    outcome, target = quantized(source, tmp_path / "4", op_types=op_types)
    assert outcome.metrics["quantized"] == {"MatMul": 1}
    assert outcome.notes[0].startswith("1 Gather node stays in fp32: its rows have an odd number")
    feeds = {"x": np.arange(9)}
    assert run_model(target, feeds)["y"].shape == (9, 3)
    outcome, target = quantized(source, tmp_path / "8", op_types=op_types, bits=8)
    assert outcome.metrics["quantized"] == {"Gather": 1, "MatMul": 1}
    expected = run_model(source, feeds)["y"]
    assert cosine(run_model(target, feeds)["y"], expected) > 0.999
    with pytest.raises(StepError, match="1 Gather node stays in fp32"):
        quantized(source, tmp_path / "none", op_types=("Gather",))
