"""A model in ORT format describes itself, and a package that does not fit it is named."""

import json
import subprocess
import sys
from dataclasses import replace
from importlib import import_module

import numpy as np
import onnx
import pytest

from onnxbuild.features.packages.ort_mobile import FEATURE
from onnxbuild.onnxkit.ahead_of_time.options import OrtFormatOptions
from onnxbuild.onnxkit.ahead_of_time.ort_format import convert_to_ort
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, read_manifest
from onnxbuild.onnxkit.ort_mobile.described import DESCRIBE, described, sizes_of
from tests.native.packages import write_ort_bundle
from tests.onnxkit.models import branching, linear


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """(folder, its manifest, what its model says of itself)."""
    folder = tmp_path_factory.mktemp("held")
    bundle = write_ort_bundle(folder / "ort", folder / "scratch", ("float32", "int64"))
    found = described(str(bundle / "model.ort"))
    sizes = {**found["sizes"], "kernels": ["ai.onnx:Identity", "ai.onnx:Mul"]}
    (bundle / "sizes.json").write_text(json.dumps(sizes))
    return bundle, read_manifest(json.loads((bundle / MANIFEST_FILE).read_text())), found


def test_a_model_says_its_inputs_outputs_and_operators(package):
    bundle, manifest, found = package
    assert [(name, dtype) for name, dtype, _ in found["inputs"]] == [
        ("in.float32", "float32"),
        ("in.int64", "int64"),
    ]
    assert [name for name, _, _ in found["outputs"]] == ["class-float32", "class-int64"]
    shape = manifest.inputs[0].shape
    assert found["inputs"][0][2] == [size if isinstance(size, int) else -1 for size in shape]
    module, _, name = DESCRIBE.partition(":")
    assert json.loads(json.dumps(getattr(import_module(module), name)(str(bundle / "model.ort"))))


def test_it_is_read_without_frameworks(package):
    program = (
        "import sys; from onnxbuild.onnxkit.ort_mobile.described import described\n"
        "described(sys.argv[1]); print(sorted({'torch', 'onnx', 'onnxruntime'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, package[0] / "model.ort"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"


def faults(package, manifest=None, found=None):
    bundle, own, says = package
    return [
        *FEATURE.own_model.faults(bundle, manifest or own, json.loads(json.dumps(found or says)))
    ]


def test_a_sound_package_fits(package):
    assert faults(package) == []


@pytest.mark.parametrize(
    ("changed", "side"),
    [
        (lambda m: {"inputs": m.inputs[::-1]}, "inputs"),
        (
            lambda m: {"outputs": (replace(m.outputs[0], dtype="float64"), *m.outputs[1:])},
            "outputs",
        ),
        (lambda m: {"inputs": (replace(m.inputs[0], shape=(1,) * 5), *m.inputs[1:])}, "inputs"),
    ],
)
def test_another_signature_is_named(package, changed, side):
    other = replace(package[1], **changed(package[1]))
    assert faults(package, other) == [f"its model has other {side} than the variant"]


def test_other_operators_and_sizes_are_named(package):
    sizes = package[2]["sizes"]
    more = {"operator": "ai.onnx:Cast", "nodes": 1, "weights_bytes": 0}
    found = {**package[2], "sizes": {**sizes, "operators": [*sizes["operators"], more]}}
    assert faults(package, found=found) == [
        "required_operators.config lacks operators of its model: ai.onnx:Cast",
        "sizes.json is of another model",
    ]


def test_what_is_no_such_file_is_refused(tmp_path):
    (tmp_path / "model.ort").write_bytes(b"no model at all")
    with pytest.raises(ValueError, match="the file is no ORT format model"):
        described(str(tmp_path / "model.ort"))


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
