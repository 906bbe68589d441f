"""Weights in a file of their own, and in 4 bits: in every form of package, each run by what runs it."""

import hashlib
import json
import shutil
import subprocess
import zipfile

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.cli.conftest import Project
from tests.features.packages import mlflow_server
from tests.native import include_folder
from tests.triton.server import install, serving

pytestmark = pytest.mark.slow

FORMS = ("triton", "mlflow", "oci", "web", "wheel", "node", "cpp")
NEEDS = {"web": "node", "node": "node", "cpp": "c++"}
VARIANTS = ("fp32", "w4")
FEEDS = {"input": np.random.default_rng(3).normal(size=(3, 64)).astype(np.float32)}
MODEL = """\
import torch


def load():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 32))
"""
RECIPE = f"""\
version: 1
name: net
model: {{entrypoint: model.py:load}}
dummy_inputs: {{input: {{dtype: float32, shape: [batch, 64]}}}}
outputs: [y]
dynamic_axes: {{batch: {{min: 1, max: 8, example: 2}}}}
export: {{exporter: torchscript, external_data: always}}
quantization: {{fp32: none, w4: {{mode: weight_only, bits: 4, block_size: 32}}}}
packages: {{{", ".join(f"{each}: {{}}" for each in FORMS)}}}
"""


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    project = Project(tmp_path_factory.mktemp("external") / "project", patience_s=600)
    project.write("pyproject.toml", "")
    project.write("model.py", MODEL)
    project.write("net.yaml", RECIPE)
    headers = include_folder()
    env = {"ORT_INCLUDE_DIR": str(headers)} if headers else {}
    only = [word for each in VARIANTS for form in FORMS for word in ("--only", f"{each}-{form}")]
    done = project("run", "net.yaml", *only, env=env)
    assert done.code == 0, done.out + done.err
    return project.folder / "artifacts/out/net"


def expected(bundle):
    """What ONNX Runtime gives of a bundle."""
    (found,) = onnxruntime.InferenceSession(bundle / "model.onnx").run(["y"], FEEDS)
    return found


def contents(folder):
    """SHA-256 of each file of a package, and of each file in a wheel."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    found = {hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    for wheel in (path for path in files if path.suffix == ".whl"):
        with zipfile.ZipFile(wheel) as archive:
            found |= {
                hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()
            }
    return found


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_form_holds_the_weights_and_is_run(out, variant):
    bundle = out / variant
    model = onnx.load(bundle / "model.onnx", load_external_data=False)
    assert any(each.external_data for each in model.graph.initializer)
    assert ("MatMulNBits" in {node.op_type for node in model.graph.node}) == (variant == "w4")
    whole = {
        hashlib.sha256((bundle / name).read_bytes()).hexdigest()
        for name in ("model.onnx", "model.onnx.data")
    }
    for form in FORMS:
        folder = out / f"{variant}-{form}"
        assert whole <= contents(folder), folder
        if form in ("triton", "mlflow"):
            continue  # the tests below
        report = json.loads((folder / "run.json").read_text())
        is_here = form not in NEEDS or shutil.which(NEEDS[form]) is not None
        is_here = is_here and (form != "cpp" or include_folder() is not None)
        assert report.get("passed") is True or (not is_here and "skipped" in report), folder


def test_triton_serves_them(out, tmp_path):
    triton = install(tmp_path / "triton")
    repository, feeds = tmp_path / "repository", tmp_path / "feeds.npz"
    np.savez(feeds, **FEEDS)
    tasks = []
    for variant in VARIANTS:
        shutil.copytree(out / f"{variant}-triton/net-{variant}", repository / f"net-{variant}")
        assert (repository / f"net-{variant}/1/model.onnx.data").is_file()
        files = {each: tmp_path / f"{variant}-{each}.npz" for each in ("http", "grpc")}
        tasks.append({"model": f"net-{variant}", "feeds": feeds, **files})
    with serving(triton, repository, tmp_path) as server:
        assert server.is_ready, server.said()[-4000:]
        assert server.ask(tasks, tmp_path) == [{}, {}]
    for task, variant in zip(tasks, VARIANTS, strict=True):
        for protocol in ("http", "grpc"):
            with np.load(task[protocol]) as found:
                np.testing.assert_allclose(found["y"], expected(out / variant), atol=1e-5)


ASK = """\
import sys, mlflow, numpy
feeds = dict(numpy.load(sys.argv[1]))
for folder in sys.argv[2:]:
    numpy.save(folder.rstrip('/') + '.npy', mlflow.pyfunc.load_model(folder).predict(feeds)['y'])
"""


def test_mlflow_loads_them(out, tmp_path):
    python = mlflow_server.install(tmp_path / "venv")
    feeds = tmp_path / "feeds.npz"
    np.savez(feeds, **FEEDS)
    folders = [shutil.copytree(out / f"{each}-mlflow", tmp_path / each) for each in VARIANTS]
    asked = subprocess.run(
        [python, "-c", ASK, feeds, *folders],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={"MLFLOW_DISABLE_TELEMETRY": "true", "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert asked.returncode == 0, asked.stdout + asked.stderr
    for variant in VARIANTS:
        found = np.load(tmp_path / f"{variant}.npy")
        np.testing.assert_allclose(found, expected(out / variant), atol=1e-5)
