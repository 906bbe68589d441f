"""The table of sensitive nodes, through the command."""

import json

import pytest

pytestmark = pytest.mark.slow

DATA = """
import numpy as np


def feeds():
    generator = np.random.default_rng(7)
    for _ in range(12):
        yield {"input": generator.standard_normal((4, 4)).astype(np.float32)}


def judged():
    for item in feeds():
        yield item, item["input"].sum(1) > 0


def nearness(outputs, labels, wrong=False):
    if wrong:
        return float("nan")
    return -float(np.mean([np.abs(each["logits"]).mean() for each in outputs]))
"""
RECIPE = """quantization:
  int8: {mode: dynamic, validate: {cosine_min: 0.5}}
  kept: {mode: static, keep_most_sensitive: 0.3, validate: {cosine_min: 0.5}}
calibration: {data: models/data.py:feeds, samples: 12}
evaluate: {data: models/data.py:judged, metric: models/data.py:nearness}
sensitivity: {table: true, rank_by: metric, samples: 3}
"""


@pytest.fixture
def asking(project):
    project.write("models/data.py", DATA)
    project.edit("tiny.yaml", "quantization: {fp32: none}\n", RECIPE)
    return project


def test_each_8_bit_variant_gets_its_table_and_the_run_says_the_worst(asking):
    first = asking.run()
    assert first.code == 0, first.out + first.err
    assert {"sensitivity", "kept/sensitivity"} <= set(first.ran)
    assert first.out.count("most sensitive nodes of 2 (drop of ") == 2
    found = {}
    for variant, rounding in (("int8", "dynamic"), ("kept", "static")):
        folder = asking.folder / "artifacts/out/tiny" / variant
        found[variant] = json.loads((folder / "sensitivity.json").read_text())
        assert found[variant]["rounding"] == rounding
        assert found[variant]["ranked_by"].endswith(":nearness")
        assert len(found[variant]["nodes"]) == 2
        assert (folder / "sensitivity-plot.svg").read_text().startswith("<svg")
        ranges = folder / "calibration-ranges.json"
        assert ranges.exists() == (rounding == "static")
    assert found["int8"]["nodes"] != found["kept"]["nodes"]
    assert asking.run().ran == []

    asking.edit("tiny.yaml", "samples: 3", "samples: 4")
    again = asking.run()
    assert {"sensitivity", "kept/sensitivity"} <= set(again.ran)
    assert "int8/quantize" not in again.ran


def test_a_table_without_data_is_refused_before_anything_runs(asking):
    asking.edit("tiny.yaml", ", rank_by: metric", "")
    done = asking.run()
    assert done.code == 2
    assert "asks for a table, and no fidelity.data is named to measure on" in done.err
    assert done.ran == []
