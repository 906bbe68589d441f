import json
import math

import numpy as np
import onnx
import pytest
from onnx import helper

from onnxbuild.adapters.machine import host_facts
from onnxbuild.core.errors import NotApplicableError
from onnxbuild.mode_steps.auto_options import without_auto
from onnxbuild.onnxkit.accuracy.comparison import Noise
from onnxbuild.onnxkit.calibrate.calibration import Rule, calibrate
from onnxbuild.onnxkit.calibrate.thresholds import IntegerGrid
from onnxbuild.onnxkit.quantize.dynamic_quantizer import split_embeddings
from onnxbuild.onnxkit.quantize.eight_bit_forms import (
    DYNAMIC_OPERATORS,
    STATIC_OPERATORS,
    dynamic_misfits,
    misfit_notes,
    static_misfits,
)
from onnxbuild.onnxkit.sessions.element_types import load_typed
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.steps import quantize_dynamic, quantize_static, quantize_weights
from onnxbuild.steps.quantize_dynamic import DynamicOptions, DynamicParams
from onnxbuild.steps.quantize_static import StaticOptions, StaticParams
from onnxbuild.steps.quantize_weights import WeightOptions, WeightParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import value
from tests.onnxkit.single_operators import (
    DYNAMIC,
    MASK,
    MICROSOFT,
    PLACES,
    STATIC,
    TOKENS,
    WEIGHTS,
    attention,
    embeddings,
    lstm,
    multiplied,
    normal,
    passing,
    shared_recurrent,
    single,
    unary,
)
from tests.steps.graphs import save

LEAST_DB = 20.0
"""8 bits of normal values hold 30 to 50; an operator that computes something else is below 10."""


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as a child runs a step


def dynamic(case, folder, **options):
    """The step's outcome, and the least SQNR of its outputs, as written and as ORT optimizes it."""
    source = save(case.model, folder / "source")
    params = DynamicParams(without_auto(DynamicOptions(**options), host_facts()))
    outcome, context = run_step(quantize_dynamic.KIND, params, folder / "step", {"model": source})
    return outcome, least_sqnr(source, context.output("model"), case.feeds)


def static(case, folder, **options):
    source = save(case.model, folder / "source")
    calibration = folder / "calibration"
    calibration.mkdir()
    found = calibrate(
        lambda: load_typed(source),
        [case.feeds],
        Rule("minmax", IntegerGrid()),
        scratch=folder,
        where="",
    )
    bounds = {name: [float(end) for end in ends] for name, ends in found.ranges.items()}
    ranges = {"ranges": bounds, "unbounded": list(found.unbounded), "narrowest": found.narrowest}
    (calibration / "ranges.json").write_text(json.dumps(ranges))
    reported = StaticOptions(**{"activation_type": "uint8", **options})
    params = StaticParams(without_auto(reported, host_facts()))
    inputs = {"model": source, "calibration": calibration}
    outcome, context = run_step(quantize_static.KIND, params, folder / "step", inputs)
    return outcome, least_sqnr(source, context.output("model"), case.feeds)


def least_sqnr(expected, actual, feeds):
    exact = run_session(open_session(expected, optimize=False), feeds)
    found = []
    for optimize in (False, True):
        outputs = run_session(open_session(actual, optimize=optimize), feeds)
        for name, array in exact.items():
            noise = Noise()
            noise.add(array, outputs[name])
            found.append(noise.sqnr_db)
    return min(found)


@pytest.mark.parametrize(
    "options", [{}, {"per_channel": False}, {"weight_type": "uint8"}], ids=str
)
@pytest.mark.parametrize("name", DYNAMIC)
def test_what_is_quantized_dynamically_computes_the_same(tmp_path, name, options):
    outcome, sqnr = dynamic(DYNAMIC[name](), tmp_path, **options)
    assert outcome.metrics["quantized_nodes"] > 0
    assert LEAST_DB < sqnr < math.inf


@pytest.mark.parametrize("per_channel", [True, False])
def test_unsigned_weights_are_unsigned_in_recurrent_nodes_too(tmp_path, per_channel):
    source = save(lstm().model, tmp_path / "source")
    options = DynamicOptions(weight_type="uint8", per_channel=per_channel)
    params = DynamicParams(without_auto(options, host_facts()))
    _, context = run_step(quantize_dynamic.KIND, params, tmp_path / "step", {"model": source})
    made = onnx.load(context.output("model") / "model.onnx")
    node = next(each for each in made.graph.node if each.op_type == "DynamicQuantizeLSTM")
    types = {each.name: each.data_type for each in made.graph.initializer}
    assert {types[node.input[place]] for place in (1, 2, 9, 11)} == {onnx.TensorProto.UINT8}


@pytest.mark.parametrize("activations", ["uint8", "int8"])
@pytest.mark.parametrize("name", STATIC)
def test_what_is_quantized_statically_computes_the_same(tmp_path, name, activations):
    outcome, sqnr = static(STATIC[name](), tmp_path, activation_type=activations)
    assert outcome.metrics["quantized_nodes"] > 0
    assert sqnr > LEAST_DB


@pytest.mark.parametrize(
    ("bits", "level", "least_db"), [(8, 4, 30), (8, 0, 35), (4, 4, 10), (4, 0, 10)]
)
@pytest.mark.parametrize("name", WEIGHTS)
def test_what_has_its_weights_alone_quantized_computes_the_same(
    tmp_path, name, bits, level, least_db
):
    case = WEIGHTS[name]()
    source = save(case.model, tmp_path / "source")
    options = WeightOptions(bits=bits, accuracy_level=level, op_types=("MatMul", "Gemm", "Gather"))
    outcome, context = run_step(
        quantize_weights.KIND, WeightParams(options), tmp_path / "step", {"model": source}
    )
    assert outcome.metrics["quantized_nodes"] == 1
    assert least_db < least_sqnr(source, context.output("model"), case.feeds) < 70


def test_every_operator_that_is_quantized_by_default_is_shown():
    from onnxruntime.quantization.registry import (
        IntegerOpsRegistry,
        QDQRegistry,
        QLinearOpsRegistry,
    )

    assert {name.split()[0] for name in DYNAMIC} == {*DYNAMIC_OPERATORS, "Gemm"}
    assert {name.split()[0] for name in STATIC} == set(STATIC_OPERATORS)
    assert {name.split()[0] for name in WEIGHTS} >= set(WeightOptions().op_types)
    assert set(DYNAMIC_OPERATORS) <= set(IntegerOpsRegistry)
    assert set(STATIC_OPERATORS) <= {*QDQRegistry, *QLinearOpsRegistry}


def onnx_attention():
    keys = {"k": normal(2, 2, 5, 8), "v": normal(2, 2, 5, 8)}
    query = {"q": normal(2, 2, 5, 8)}
    return single("Attention", ["q", "k", "v"], query, keys, opset=23)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (lambda: attention("", "", "a", feeds={"a": normal(2, 2, 5, 5)}), "attention_bias"),
        (onnx_attention, "it is of domain 'ai.onnx', and ONNX Runtime quantizes another"),
        (lambda: lstm(layout=1), "drops its layout"),
        (lambda: multiplied(normal(16)), "a vector has no channels"),
    ],
)
def test_a_node_whose_8_bit_form_is_another_is_found(case, reason):
    (first, *_) = dynamic_misfits(case().model, per_channel=True)
    assert first.name == "node"
    assert reason in first.reason


@pytest.mark.parametrize("name", DYNAMIC)
def test_no_misfit_is_found_where_the_8_bit_form_computes_the_same(name):
    made = DYNAMIC[name]().model
    split_embeddings(made, lambda _: True)
    assert dynamic_misfits(made, per_channel=True) == []


@pytest.mark.parametrize(
    "case",
    [lambda: attention("", "", "a", feeds={"a": normal(2, 2, 5, 5, scale=3)}), shared_recurrent],
)
def test_a_misfit_stays_in_fp32_next_to_what_is_quantized(tmp_path, case):
    found = case()
    found.model.graph.initializer.append(
        onnx.numpy_helper.from_array(normal(16 if TOKENS is found.feeds["x"] else 8, 5), "k")
    )
    found.model.graph.node.append(helper.make_node("MatMul", ["y", "k"], ["o"], name="last"))
    found.model.graph.output.append(value("o", None))
    outcome, sqnr = dynamic(found, tmp_path)
    assert outcome.metrics["quantized"] == {"MatMulInteger": 1}
    assert outcome.notes[0].split(": ")[0].split(" ")[2:] in (
        ["node", "stays", "in", "fp32"],
        ["nodes", "stay", "in", "fp32"],
    )
    assert sqnr > LEAST_DB


def test_where_nothing_else_can_be_quantized_the_error_says_which_node_stays(tmp_path):
    case = attention("", "", "a", feeds={"a": normal(2, 2, 5, 5)})
    with pytest.raises(
        NotApplicableError, match="1 Attention node stays in fp32: QAttention has no"
    ):
        dynamic(case, tmp_path)


def test_a_layer_normalization_over_two_axes_stays_in_fp32(tmp_path):
    over_two = unary(
        "LayerNormalization", weights={"s": normal(5, 16) + 1, "b": normal(5, 16)}, axis=1
    )
    (misfit,) = static_misfits(over_two.model)
    (note,) = misfit_notes([misfit, misfit])
    assert note.startswith(
        "2 LayerNormalization nodes stay in fp32: the quantizer fails on a scale"
    )
    weights = {"g": normal(5, 16) + 1}
    outcome, sqnr = static(
        passing("LayerNormalization", ("s", "g"), weights=weights, axis=1), tmp_path
    )
    assert outcome.notes == misfit_notes([misfit])
    assert sqnr > LEAST_DB


def test_embeddings_with_positions_are_split_into_parts_that_compute_the_same(tmp_path):
    case = embeddings(segments=True, positions=PLACES, outputs=("y", "unused", "sum"))
    source = save(case.model, tmp_path / "whole")
    assert split_embeddings(case.model, lambda node: node.name == "other") == {}
    split = split_embeddings(case.model, lambda node: node.name == "node")
    assert split == {"node": ("node/words", "node/positions", "node/segments")}
    parts = save(case.model, tmp_path / "parts")
    assert least_sqnr(source, parts, case.feeds) > 120


@pytest.mark.parametrize(
    "options",
    [{"op_types": ("EmbedLayerNormalization",)}, {"nodes_to_include": ("node",)}],
    ids=str,
)
def test_embeddings_with_positions_that_are_asked_for_get_tables_in_8_bits(tmp_path, options):
    case = embeddings(positions=PLACES)
    table = onnx.numpy_helper.from_array(normal(3, 16), "other")
    case.model.graph.initializer.append(table)
    case.model.graph.input.append(value("row", [1], onnx.TensorProto.INT64))
    case.model.graph.node.append(
        helper.make_node("Gather", ["other", "row"], ["o"], name="second")
    )
    case.model.graph.output.append(value("o", None))
    case.feeds["row"] = np.zeros(1, np.int64)
    outcome, sqnr = dynamic(case, tmp_path, **options)
    assert outcome.metrics["quantized"] == {"Gather": 2}
    assert LEAST_DB < sqnr < math.inf


def test_the_operators_own_domain_decides():
    assert MASK.shape == TOKENS.shape[:2]
    other = single("Gather", ["t", "x"], {"x": TOKENS}, {"t": normal(3)}, domain=MICROSOFT)
    (misfit,) = dynamic_misfits(other.model, per_channel=True)
    assert misfit.reason == "it is of domain 'com.microsoft', and ONNX Runtime quantizes another"
