"""Folders for MLflow: what is in them, and what MLflow makes of a missing value; tests/recipes/test_packages.py serves recipes."""

import json
import subprocess

import numpy as np
import onnxruntime
import pytest
import yaml
from onnx import TensorProto, helper

from onnxbuild.features.packages.mlflow import FEATURE, PackageMlflowParams
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from tests.fakes.step_context import run_step
from tests.features.packages import mlflow_server

SESSION = {
    "graph_optimization": "all", "execution_mode": "sequential", "intra_op_threads": 2,
    "inter_op_threads": 0, "memory_pattern": True, "cpu_arena": True, "config": {}, "spinning": "allow",
    "deterministic_compute": False, "free_dimensions": {},
}  # fmt: skip
CUDA = {"name": "CUDAExecutionProvider", "options": {"device_id": "1"}}
CPU = {"name": "CPUExecutionProvider", "options": {}}
LABELS = ["no", "yes"]
MANIFEST = {
    "schema_version": 2, "name": "demo", "kind": "onnx", "file": "model.onnx", "precision": "fp32",
    "recipe_sha256": "00", "variant": "fp32", "validation": {},
    "inputs": [{"name": "x", "dtype": "float32", "shape": ["batch", 4]}],
    "outputs": [
        {"name": "label", "dtype": "string", "shape": ["batch"], "labels": LABELS},
        {"name": "scores", "dtype": "float32", "shape": ["batch", 2], "labels": LABELS},
    ],
    "dynamic_axes": {"batch": {"min": 1, "max": 8, "example": 2, "multiple_of": 1}},
    "targets": {"cuda": {"chain": [CUDA, CPU], "session": SESSION}},
    "providers": [{**CUDA, "target": "cuda"}, {**CPU, "target": "cpu"}],
    "session": SESSION, "size_bytes": 0, "files": {},
    "versions": {"onnx": "1.23.2", "onnxruntime": "1.31.1"},
}  # fmt: skip


def packaged(folder, *, runtime="auto", model=b"a model", weights=None, feeds=None, **changes):
    bundle, reference = folder / "bundle", folder / "reference"
    bundle.mkdir(parents=True)
    reference.mkdir()
    (bundle / "model.onnx").write_bytes(model)
    if weights is not None:
        (bundle / "model.onnx.data").write_bytes(weights)
    (bundle / "manifest.json").write_text(json.dumps(MANIFEST | changes))
    writer = ReferenceWriter(reference)
    feeds = feeds or {"x": np.arange(8, dtype=np.float32).reshape(2, 4)}
    writer.add(ReferencePoint("example", {"batch": 2}, feeds, {"label": np.array(["no", "yes"])}))
    writer.finish()
    params = PackageMlflowParams("3.11", runtime, ("our-metrics",), (("recipe", "demo"),))
    outcome, context = run_step(
        FEATURE.kind, params, folder / "step", {"bundle": bundle, "reference": reference}
    )
    return outcome, context.output("bundle")


def mlmodel(folder):
    return yaml.safe_load((folder / "MLmodel").read_text())


def test_mlmodel_has_the_signature_labels_providers_with_options_and_the_session(tmp_path):
    outcome, folder = packaged(tmp_path)
    model = mlmodel(folder)
    onnx_flavor = model["flavors"]["onnx"]
    assert onnx_flavor["providers"] == [
        ["CUDAExecutionProvider", {"device_id": "1"}],
        "CPUExecutionProvider",
    ]
    assert onnx_flavor["onnx_session_options"] == {
        "execution_mode": "sequential", "graph_optimization_level": 99, "inter_op_num_threads": 0,
        "intra_op_num_threads": 2,
    }  # fmt: skip
    inputs, outputs = (json.loads(model["signature"][side]) for side in ("inputs", "outputs"))
    tensor = {"dtype": "float32", "shape": [-1, 4]}
    assert inputs == [{"name": "x", "type": "tensor", "tensor-spec": tensor}]
    assert outputs[0]["tensor-spec"] == {"dtype": "str", "shape": [-1]}
    assert model["metadata"] == {"recipe": "demo", "labels": {"label": LABELS, "scores": LABELS}}
    assert json.loads((folder / "input_example.json").read_text()) == {
        "x": [[0, 1, 2, 3], [4, 5, 6, 7]]
    }
    readme = (folder / "README.md").read_text()
    assert "| output | `scores` | float32 | `[batch, 2]` | 2: no, yes |" in readme
    assert "Golden inputs: `example`." in readme
    assert outcome.notes == ()
    subprocess.run(["sha256sum", "-c", "SHA256SUMS", "--quiet"], cwd=folder, check=True)


@pytest.mark.parametrize(
    ("runtime", "providers", "line"),
    [
        ("auto", MANIFEST["providers"], "onnxruntime-gpu==1.31.1"),
        ("none", MANIFEST["providers"], None),
    ],
)
def test_requirements_are_pinned_and_name_the_runtime_of_the_first_provider(
    tmp_path, runtime, providers, line
):
    _, folder = packaged(tmp_path, runtime=runtime, providers=providers)
    lines = (folder / "requirements.txt").read_text().splitlines()
    pinned = ["mlflow==3.17.2", "onnx==1.23.2", *([line] if line else [])]
    assert lines == [*pinned, "our-metrics"]
    conda = yaml.safe_load((folder / "conda.yaml").read_text())
    assert conda["dependencies"] == ["python=3.11", "pip", {"pip": lines}]


def test_whatever_differs_gives_another_id(tmp_path):
    """MLflow takes two models of one id for one."""
    changes = {
        "same": {},
        "model": {"model": b"another model"},
        "weights": {"weights": b"1"},
        "retrained": {"weights": b"2"},
        "session": {"session": SESSION | {"intra_op_threads": 1}},
        "providers": {"providers": MANIFEST["providers"][1:]},
        "variant": {"variant": "int8"},
        "runtime": {"runtime": "none"},
    }
    ids = {
        name: mlmodel(packaged(tmp_path / name, **each)[1])["model_uuid"]
        for name, each in changes.items()
    }
    assert len(set(ids.values())) == len(ids), ids


def test_an_example_is_json_without_nan_and_is_left_out_where_json_has_no_number(tmp_path):
    feeds = {"x": np.array([[1, np.nan, 2, 3]], np.float32)}
    _, folder = packaged(tmp_path / "missing", feeds=feeds)

    def refuse(word):
        raise AssertionError(word)

    for name, inside in (("input_example.json", ()), ("serving_input_example.json", ("inputs",))):
        found = json.loads((folder / name).read_text(), parse_constant=refuse)
        for key in inside:
            found = found[key]
        assert found == {"x": [[1, None, 2, 3]]}
    feeds = {"x": np.array([[1, np.inf, 2, 3]], np.float32)}
    _, folder = packaged(tmp_path / "infinite", feeds=feeds)
    assert not (folder / "input_example.json").exists()
    assert "saved_input_example_info" not in mlmodel(folder)


@pytest.mark.slow
def test_mlflow_reads_a_missing_value_of_the_example_and_of_a_request_as_nan(tmp_path):
    python = mlflow_server.install(tmp_path / "venv")
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in "xy"
    ]
    zero = helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0])
    nodes = [
        helper.make_node("IsNaN", ["x"], ["missing"]),
        helper.make_node("Where", ["missing", "zero", "x"], ["y"]),
    ]
    graph = helper.make_graph(nodes, "fill", values[:1], values[1:], [zero])
    opset = [helper.make_opsetid("", 18)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()
    feeds = {"x": np.array([[1, np.nan, 2, 3]], np.float32)}
    (y,) = onnxruntime.InferenceSession(model).run(None, feeds)
    outputs = [{"name": "y", "dtype": "float32", "shape": ["batch", 4]}]
    providers = MANIFEST["providers"][1:]
    _, folder = packaged(
        tmp_path / "package", model=model, feeds=feeds, outputs=outputs, providers=providers
    )
    (answer,) = mlflow_server.ask(python, [(folder, feeds)], tmp_path)
    assert answer["loaded"] == answer["registered"] == answer["served"] == {"y": y.tolist()}
    assert str(answer["example"]["x"]) == "[[1.0, nan, 2.0, 3.0]]"
