"""Sizes of a model in ORT format, by operator and by type."""

import numpy as np
import onnx

from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.ahead_of_time.ort_format import convert_to_ort
from onnxbuild.onnxkit.ort_mobile.described import sizes_of
from tests.onnxkit.models import branching, linear


def converted(folder, model):
    for name in ("source", "work", "made"):
        (folder / name).mkdir()
    onnx.save(model, folder / "source/model.onnx")
    convert_to_ort(folder / "source", folder / "made", folder / "work", OrtFormatOptions(), "test")
    return folder / "made/model.ort"


def test_every_byte_of_the_weights_counts_for_one_operator(tmp_path):
    path = converted(tmp_path, linear(rows=40, columns=30))
    found = sizes_of(path)
    assert found["file_bytes"] == path.stat().st_size
    assert found["weights_bytes"] == (40 * 30 + 30) * 4
    assert found["graph_bytes"] == found["file_bytes"] - found["weights_bytes"]
    assert found["weights_bytes_by_dtype"] == {"float32": found["weights_bytes"]}
    assert sum(row["weights_bytes"] for row in found["operators"]) == found["weights_bytes"]
    assert found["operators"][0]["operator"].partition(":")[2] in {"FusedGemm", "Gemm", "MatMul"}


def test_weights_that_a_branch_reads_count_for_the_node_in_it(tmp_path):
    found = sizes_of(converted(tmp_path, branching()))
    rows = {row["operator"]: (row["nodes"], row["weights_bytes"]) for row in found["operators"]}
    assert rows["ai.onnx:Add"] == (1, np.ones(2, np.float32).nbytes)
    assert rows["ai.onnx:If"] == (1, 0)
