"""Sensitivity reports as heat."""

from __future__ import annotations

import json

import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.pictures.heat import read_heat

NODES = [
    {"name": "a", "measured": True, "cosine_mean": 0.75},
    {"name": "b", "measured": True, "cosine_mean": 1.0},
    {"name": "c", "measured": False},
]


def test_losses_are_read_by_cosine_and_by_drop(tmp_path):
    path = tmp_path / "sensitivity.json"
    blocks = [{"name": "layer.0", "cosine_mean": 0.5}]
    path.write_text(json.dumps({"ranked_by": "cosine_mean", "nodes": NODES, "blocks": blocks}))
    heat = read_heat(path)
    assert (heat.nodes, heat.blocks) == ({"a": 0.25, "b": 0.0}, {"layer.0": 0.5})
    assert heat.measure == "1 - mean cosine"
    dropped = [{**each, "drop": 0.125} for each in NODES]
    path.write_text(json.dumps({"ranked_by": "m:score", "nodes": dropped, "blocks": []}))
    heat = read_heat(path)
    assert (heat.nodes, heat.measure) == ({"a": 0.125, "b": 0.125}, "drop of m:score")
    noisy = [{**each, "sqnr_db": db} for each, db in zip(NODES, (20.0, None, 1.0), strict=True)]
    path.write_text(json.dumps({"ranked_by": "sqnr_db", "nodes": noisy, "blocks": []}))
    heat = read_heat(path)
    assert (heat.nodes, heat.measure) == ({"a": 0.01, "b": 0.0}, "noise to signal")


@pytest.mark.parametrize("text", ["", '{"ranked_by": "x", "nodes": [{}], "blocks": []}'])
def test_what_is_no_report_is_refused(tmp_path, text):
    path = tmp_path / "sensitivity.json"
    path.write_text(text)
    with pytest.raises(StepError, match=r"sensitivity\.json is not a sensitivity report"):
        read_heat(path)
