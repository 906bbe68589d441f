"""A package for phones held against its variant: what does not fit is named."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from importlib import import_module

import pytest

from onnxbuild.features.packages.ort_mobile import FEATURE
from onnxbuild.onnxkit.bundles.manifest import MANIFEST_FILE, read_manifest
from onnxbuild.onnxkit.ort_mobile.described import DESCRIBE, described
from tests.native.packages import write_ort_bundle


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
