import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import yaml

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.steps.package_mlflow import KIND, PackageMlflowParams
from tests.environments import INSTALLED
from tests.fakes.step_context import run_step
from tests.framework_environments import onnxbuild

HERE = Path(__file__).parent
RECIPES = HERE.parents[2] / "recipes"
FEEDS = {
    "vad/fp32": {
        "sound": np.random.default_rng(1).random((3, 576), np.float32) / 10,
        "state": np.zeros((2, 3, 128), np.float32), "rate": np.array(16000),
    },
    "intents/int8-pipeline": {"text": np.array(["play a song", "", "é 天"])},
}  # fmt: skip
"""RECIPE/BUNDLE -> what MLflow is asked."""
SESSION = {
    "graph_optimization": "all", "execution_mode": "sequential", "intra_op_threads": 2,
    "inter_op_threads": 0, "memory_pattern": True, "cpu_arena": True, "config": {}, "spinning": "allow",
    "deterministic_compute": False, "free_dimensions": {},
}  # fmt: skip
MANIFEST = {
    "inputs": [{"name": "x", "dtype": "float32", "shape": ["batch", 4]}],
    "outputs": [{"name": "label", "dtype": "string", "shape": ["batch"]}],
    "providers": [
        {"name": "CUDAExecutionProvider", "options": {"device_id": "1"}, "target": "cuda"},
        {"name": "CPUExecutionProvider", "options": {}, "target": "cpu"},
    ],
    "session": SESSION, "size_bytes": 7, "files": {"model.onnx": {"sha256": "ab"}},
    "versions": {"onnx": "1.23.2", "onnxruntime": "1.31.1"},
}  # fmt: skip


def packaged(folder, **changes):
    bundle, reference = folder / "bundle", folder / "reference"
    bundle.mkdir(parents=True)
    reference.mkdir()
    (bundle / "model.onnx").write_bytes(b"a model")
    (bundle / "manifest.json").write_text(json.dumps(MANIFEST | changes))
    writer = ReferenceWriter(reference)
    feeds = {"x": np.arange(8, dtype=np.float32).reshape(2, 4)}
    writer.add(ReferencePoint("example", {"batch": 2}, feeds, {"label": np.array(["a", "b"])}))
    writer.finish()
    params = PackageMlflowParams("3.11", ("our-metrics==1.0",), (("recipe", "demo"),))
    outcome, context = run_step(
        KIND, params, folder / "step", {"bundle": bundle, "reference": reference}
    )
    return outcome, context.output("bundle")


def test_mlmodel_has_the_signature_providers_with_options_and_the_session(tmp_path):
    outcome, folder = packaged(tmp_path)
    model = yaml.safe_load((folder / "MLmodel").read_text())
    onnx = model["flavors"]["onnx"]
    assert onnx["providers"] == [
        ["CUDAExecutionProvider", {"device_id": "1"}],
        "CPUExecutionProvider",
    ]
    assert onnx["onnx_session_options"] == {
        "execution_mode": "sequential", "graph_optimization_level": 99, "inter_op_num_threads": 0,
        "intra_op_num_threads": 2,
    }  # fmt: skip
    inputs, outputs = (json.loads(model["signature"][side]) for side in ("inputs", "outputs"))
    tensor = {"dtype": "float32", "shape": [-1, 4]}
    assert inputs == [{"name": "x", "type": "tensor", "tensor-spec": tensor}]
    assert outputs[0]["tensor-spec"] == {"dtype": "str", "shape": [-1]}
    assert json.loads((folder / "input_example.json").read_text()) == {
        "x": [[0, 1, 2, 3], [4, 5, 6, 7]]
    }
    assert (folder / "requirements.txt").read_text().splitlines() == [
        "mlflow>=3", "onnx>=1.23.2", "onnxruntime>=1.31.1", "our-metrics==1.0",
    ]  # fmt: skip
    assert outcome.notes == ()
    subprocess.run(["sha256sum", "-c", "SHA256SUMS", "--quiet"], cwd=folder, check=True)


def test_equal_bundles_give_equal_bytes_and_another_model_another_id(tmp_path):
    one, two = (packaged(tmp_path / each)[1] for each in ("one", "two"))
    for path in one.iterdir():
        assert path.read_bytes() == (two / path.name).read_bytes()
    _, other = packaged(tmp_path / "other", files={"model.onnx": {"sha256": "cd"}})
    ids = {yaml.safe_load((f / "MLmodel").read_text())["model_uuid"] for f in (one, other)}
    assert len(ids) == 2


def test_what_mlflow_has_no_place_for_is_said(tmp_path):
    session = SESSION | {"free_dimensions": {"batch": 1}, "config": {"session.a": "1"}}
    ids = [{"name": "ids", "dtype": "int64", "shape": []}]
    outcome, folder = packaged(tmp_path, session=session, inputs=[*MANIFEST["inputs"]])
    assert outcome.notes == ("MLflow has no place for the session settings free_dimensions",)
    model = yaml.safe_load((folder / "MLmodel").read_text())
    options = model["flavors"]["onnx"]["onnx_session_options"]
    assert options["extra_session_config"] == {"session.a": "1"}
    with pytest.raises(StepError, match="'ids' is bfloat16, which MLflow's signatures can't say"):
        packaged(tmp_path / "odd", outputs=[ids[0] | {"dtype": "bfloat16"}])
    with pytest.raises(StepError, match="'ids' is of no known shape"):
        packaged(tmp_path / "unknown", outputs=[ids[0] | {"shape": None}])


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """An interpreter with MLflow and all that is installed here."""
    folder = tmp_path_factory.mktemp("mlflow") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    made = folder / "bin" / "python"
    quiet = ["-q", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([made, "-m", "pip", "install", *quiet, "-r", HERE / "mlflow.txt"], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "tests.pth").write_text(f"{INSTALLED}\n")
    return made


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Packages of a ready ONNX with a scalar of int64 among its inputs, and of text in, labels out."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "pyproject.toml").write_text("")
    shutil.copytree(RECIPES / "models", folder / "models")
    for name in ("vad", "intents"):
        text = (RECIPES / f"{name}.yaml").read_text().partition("\nevaluate:")[0]
        (folder / f"{name}.yaml").write_text(f"{text}\npackages: {{mlflow: {{}}}}\n")
    only = [word for each in FEEDS for word in ("--only", f"{each.replace('/', ':')}-mlflow")]
    done = onnxbuild(folder, "run", "vad.yaml", "intents.yaml", *only)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "artifacts/out"


@pytest.mark.slow
@pytest.mark.parametrize("name", FEEDS)
def test_mlflow_loads_registers_and_serves_it_as_onnx_runtime_runs_it(out, python, tmp_path, name):
    folder, feeds = out / f"{name}-mlflow", FEEDS[name]
    np.savez(folder.parent / "points.npz", **feeds)
    asked = subprocess.run(
        [python, HERE / "mlflow_client.py", folder, tmp_path],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert asked.returncode == 0, asked.stdout + asked.stderr
    answer = json.loads(asked.stdout.splitlines()[-1])
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    names = [each.name for each in session.get_outputs()]
    expected = dict(zip(names, (each.tolist() for each in session.run(None, feeds)), strict=True))
    assert answer["loaded"] == answer["registered"] == answer["served"] == expected
    assert "Failed to enforce schema" in answer["refused"]
    assert answer["example"].keys() == feeds.keys()
