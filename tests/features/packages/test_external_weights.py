"""Weights in a file of their own, and in 4 bits: in every form of package, each run by what runs it."""

import hashlib
import json
import shutil
import zipfile

import onnx
import pytest

from tests.cli.conftest import Project
from tests.native import include_folder

pytestmark = pytest.mark.slow

FORMS = ("triton", "mlflow", "oci", "web", "wheel", "node", "cpp")
NEEDS = {"web": "node", "node": "node", "cpp": "c++"}
VARIANTS = ("fp32", "w4")
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
