"""Means of channels over samples."""

import numpy as np
import pytest
from onnx import helper

from onnxbuild.onnxkit.calibrate.channel_statistics import measure_channel_means
from tests.onnxkit.models import model, value, weight


@pytest.mark.parametrize("opset", [17, 18])
@pytest.mark.parametrize(("kind", "sizes"), [("MatMul", ()), ("Conv", (3, 3))])
def test_a_sample_with_an_empty_batch_counts_for_nothing(tmp_path, opset, kind, sizes):
    weights = np.ones((4, 2) if kind == "MatMul" else (2, 4, 1, 1), np.float32)
    made = model(
        [helper.make_node(kind, ["x", "w"], ["y"], name="node")],
        [value("x", ["n", 4, *sizes])],
        [value("y", None)],
        [weight("w", weights)],
    )
    made.opset_import[0].version = opset
    feeds = [
        {"x": np.full((n, 4, *sizes), each, np.float32)} for n, each in ((2, 1), (0, 9), (1, 3))
    ]
    found = measure_channel_means(made, feeds, scratch=tmp_path, where="r:calibrate")
    np.testing.assert_allclose(found["x"], [2, 2, 2, 2])
