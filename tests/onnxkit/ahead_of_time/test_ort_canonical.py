"""`.ort` files have one spelling, and mean what they meant."""

import numpy as np
import onnxruntime
import pytest

from onnxbuild.onnxkit.ahead_of_time.ort_canonical import sorted_bytes, type_parameters
from tests.steps.graphs import digits


def converted(model, path, *, runtime=False):
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    options.add_session_config_entry("session.save_model_format", "ORT")
    if runtime:
        options.add_session_config_entry("optimization.minimal_build_optimizations", "save")
    onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return path.read_bytes()


@pytest.mark.parametrize("runtime", [False, True])
def test_models_that_came_out_in_another_order_get_the_same_bytes(tmp_path, runtime):
    model = digits(tmp_path / "model") / "model.onnx"
    found = {converted(model, tmp_path / f"{n}.ort", runtime=runtime) for n in range(8)}
    assert len(found) > 1, "ONNX Runtime has an order of its own now: nothing is left to sort"
    assert len({sorted_bytes(each) for each in found}) == 1
    assert all(type_parameters(sorted_bytes(e)) == type_parameters(e) for e in found)


def test_a_sorted_file_is_loaded_and_computes_the_same(tmp_path):
    model = digits(tmp_path / "model") / "model.onnx"
    content = converted(model, tmp_path / "model.ort")
    image = np.linspace(0, 1, 3 * 64, dtype=np.float32).reshape(3, 1, 8, 8)
    outputs = [
        onnxruntime.InferenceSession(each, providers=["CPUExecutionProvider"]).run(
            None, {"image": image}
        )[0]
        for each in (content, sorted_bytes(content))
    ]
    np.testing.assert_array_equal(*outputs)


def test_the_type_parameters_are_those_of_the_operators(tmp_path):
    model = digits(tmp_path / "model") / "model.onnx"
    reported = type_parameters(converted(model, tmp_path / "model.ort"))
    assert reported[b":Gemm:13"] == {b"T": [(0, 0), (0, 1), (0, 2), (1, 0)]}
