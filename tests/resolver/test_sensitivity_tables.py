"""Tables of sensitive nodes: which variant gets which, measured on what."""

import pytest

from onnxbuild.host.host import HostFacts
from onnxbuild.resolver import resolve
from tests.written_recipes import loader

VNNI = HostFacts("x86_64", frozenset({"avx2", "avx512_vnni"}))
RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
outputs: [logits]
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
"""
REAL = "calibration: {data: model.py:samples}\nfidelity: {data: model.py:samples}\n"
MODULE = "def load(): ...\ndef samples(): ...\ndef judged(): ...\ndef score(): ...\n"
TABLES = """\
quantization:
  fp32: none
  half: fp16
  plain: dynamic
  even: {mode: dynamic, balance: true}
  fixed: static
  kept: {mode: static, keep_most_sensitive: 0.2}
"""


@pytest.fixture
def load(tmp_path):
    from_text = loader(tmp_path, model=MODULE)
    return lambda text: from_text(text).recipes


def tables_of(graph):
    return {
        view.name: [ref.step for ref, name in view.parts if name == "sensitivity.json"]
        for view in graph.deliverables
    }


def test_each_8_bit_variant_has_the_table_of_its_own_rounding(load):
    graph = resolve(load(RECIPE + REAL + TABLES + "sensitivity: {table: true}\n"), VNNI)
    assert tables_of(graph) == {
        "fp32": [],
        "half": [],
        "plain": ["demo:sensitivity"],
        "even": ["demo:balance-sensitivity"],
        "fixed": ["demo:kept/sensitivity"],
        "kept": ["demo:kept/sensitivity"],
    }
    step = graph.steps["demo:kept/sensitivity"]
    assert step.inputs["calibration"].step == "demo:fixed/calibrate"
    assert step.inputs["model"] == graph.steps["demo:kept/quantize"].inputs["model"]
    assert step.params.static.activation_type == "uint8"
    assert graph.steps["demo:sensitivity"].params.static is None
    assert graph.steps["demo:kept/quantize"].inputs["sensitivity"].step == step.name


def test_no_table_is_made_that_nobody_asks_for(load):
    graph = resolve(load(RECIPE + REAL + TABLES), VNNI)
    assert not any(steps for steps in tables_of(graph).values())
    assert [each for each in graph.steps if each.endswith("sensitivity")] == [
        "demo:kept/sensitivity"
    ]


def test_without_8_bit_variants_the_table_is_that_of_the_fp32_model(load):
    text = RECIPE + REAL + "sensitivity: {table: true, samples: 3, runs: 50}\n"
    graph = resolve(load(text), VNNI)
    assert tables_of(graph) == {"fp32": ["demo:sensitivity"]}
    params = graph.steps["demo:sensitivity"].params
    assert (params.samples, params.runs, params.metric) == (3, 50, None)


def test_ranking_by_the_metric_takes_the_evaluations_data(load):
    text = (
        "fidelity: {data: model.py:samples}\n"
        "evaluate: {data: model.py:judged, metric: model.py:score}\n"
        "sensitivity: {table: true, rank_by: metric}\n"
    )
    graph = resolve(load(RECIPE + text), VNNI)
    params = graph.steps["demo:sensitivity"].params
    assert params.data.target == "model.py:judged"
    assert params.metric.target == "model.py:score"
