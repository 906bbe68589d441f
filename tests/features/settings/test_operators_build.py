"""Models with a custom operator, built, delivered, looked into, released and verified with the real command."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

from onnxbuild.onnxkit.loaders.operator_libraries import this_platform
from tests.cli.conftest import make_project
from tests.native import DOMAIN, fancy_library, fancy_model, include_folder
from tests.verification.conftest import look_at

pytestmark = pytest.mark.slow

MODEL = """\
import torch


@torch.library.custom_op("onnxbuild_demo::fancy", mutates_args=())
def fancy(x: torch.Tensor, scale: float) -> torch.Tensor:
    return x * torch.sigmoid(scale * x)


@fancy.register_fake
def _(x, scale):
    return torch.empty_like(x)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a, self.b = torch.nn.Linear(4, 32), torch.nn.Linear(32, 2)

    def forward(self, input):
        return self.b(torch.ops.onnxbuild_demo.fancy(self.a(input), 1.702))


def load():
    return Net()
"""
RECIPE = """\
version: 1
name: tiny
model: {entrypoint: models/fancy.py:load}
dummy_inputs:
  input: {dtype: float32, shape: [batch, 4]}
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
quantization: {fp32: none, int8: dynamic, fp16: fp16}
benchmark: {max_time_s: 0.1, min_samples: 3}
export: {exporter: torchscript}
packages: {variants: [fp32], triton: {}, cpp: {headers: headers}}
"""
LIBRARY = "operators: {libraries: [ops/libfancy.so]"
NODES = f'{LIBRARY}, nodes: {{"onnxbuild_demo::fancy": "{DOMAIN}::Fancy"}}}}\n'
READY = """\
version: 1
name: ready
model: {onnx: ready.onnx}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
calibration: {data: dummy}
quantization: {fp32: none, int8: {mode: static}}
benchmark: {max_time_s: 0.1, min_samples: 3}
"""
HERE = this_platform()


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    made = make_project(tmp_path_factory.mktemp("operators") / "project")
    made.write("models/fancy.py", MODEL)
    made.write("tiny.yaml", RECIPE + NODES)
    made.write("ready.yaml", f"{READY}{LIBRARY}}}\n")
    (made.folder / "ops").mkdir()
    shutil.copy(fancy_library(), made.folder / "ops/libfancy.so")
    shutil.copytree(include_folder(), made.folder / "headers")
    onnx.save(fancy_model(), made.folder / "ready.onnx")
    done = made("lock", "tiny.yaml")
    assert done.code == 0, done.out + done.err
    built = made("run", "tiny.yaml", "ready.yaml")
    assert built.code == 0, built.out + built.err
    done = made("release", "tiny.yaml", "--version", "1.0", "--allow-dirty")
    assert done.code == 0, done.out + done.err
    return made


def bundle_of(project, name="tiny/int8") -> Path:
    return project.folder / "artifacts/out" / name


def test_every_variant_has_the_node_and_the_library_with_its_platform(project):
    for name in ("tiny/fp32", "tiny/int8", "tiny/fp16", "ready/fp32", "ready/int8"):
        bundle = bundle_of(project, name)
        manifest = json.loads((bundle / "manifest.json").read_text())
        file = f"operators/{HERE}/libfancy.so"
        assert manifest["operators"] == [{"file": file, "platforms": [HERE], "registers": True}]
        assert (bundle / file).read_bytes() == fancy_library().read_bytes()
        assert manifest["files"][file]["size_bytes"] == fancy_library().stat().st_size
        assert manifest["size_bytes"] == (bundle / "model.onnx").stat().st_size
        assert manifest["validation"]["cpu"]["passed"]
        assert manifest["opsets"][DOMAIN] == 1
        nodes = onnx.load(bundle / "model.onnx").graph.node
        assert [each.op_type for each in nodes if each.domain == DOMAIN] == ["Fancy"]


def test_load_py_registers_it_and_the_outputs_are_right(project, tmp_path):
    bundle = bundle_of(project, "ready/fp32")
    script = (
        "import sys, numpy as np, onnxruntime; sys.path.insert(0, sys.argv[1]); from load import load\n"
        "own = onnxruntime.SessionOptions()\n"
        "x = np.ones((3, 8), np.float32)\n"
        "for options in (None, own, own):\n"
        "    print(load(options=options).run(None, {'x': x})[0].sum())\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", script, bundle],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    w, v = (
        onnx.numpy_helper.to_array(each)
        for each in sorted(
            onnx.load(bundle / "model.onnx").graph.initializer, key=lambda t: -t.dims[-1]
        )
    )
    h = np.ones((3, 8), np.float32) @ w
    expected = (h / (1 + np.exp(-1.702 * h)) @ v).sum()
    np.testing.assert_allclose([float(n) for n in done.stdout.split()], [expected] * 3, rtol=1e-4)


def test_load_py_says_why_it_can_not_register_it(project, tmp_path):
    def change(each):
        return each.update(platforms=["linux-riscv64"])

    what = f"the model's custom operators are built for linux-riscv64; this is {HERE}"
    bundle = shutil.copytree(bundle_of(project), tmp_path / "bundle")
    manifest = json.loads((bundle / "manifest.json").read_text())
    change(manifest["operators"][0])
    (bundle / "manifest.json").chmod(0o644)
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    done = subprocess.run(
        [sys.executable, "-I", "-B", bundle / "load.py"],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 1
    assert what in done.stderr
    assert "Traceback" not in done.stderr


def test_the_program_in_cpp_registers_it(project):
    assert "options.RegisterCustomOpsLibrary(" in (bundle_of(project) / "cpp/main.cpp").read_text()


def test_the_package_in_cpp_is_compiled_and_computes_with_it(project):
    package = bundle_of(project, "tiny/fp32-cpp")
    assert (package / f"model/operators/{HERE}/libfancy.so").is_file()
    assert json.loads((package / "run.json").read_text())["passed"] is True


def test_triton_gets_the_library_and_its_place(project):
    folder = bundle_of(project, "tiny/fp32-triton") / "tiny-fp32"
    file = f"operators/{HERE}/libfancy.so"
    assert (folder / file).is_file()
    expected = f'model_operations {{\n  op_library_filename: "tiny-fp32/{file}"\n}}\n'
    assert expected in (folder / "config.pbtxt").read_text()


def test_diagnose_runs_the_node(project):
    done = project("diagnose", "tiny.yaml:int8")
    assert done.code == 0, done.out + done.err
    assert "Fancy" in done.out


def test_verify_runs_a_library_only_where_programs_are_trusted(project):
    release = project.folder / "dist/tiny-1.0"
    plain = look_at(release)
    assert plain.code == 0, plain.out + plain.err
    untrusted = look_at(release, "--run")
    assert untrusted.code == 3
    assert untrusted.out.count("a library of custom operators, or a kind of bundle") == 3
    trusted = look_at(release, "--run", "--trust-programs")
    assert trusted.code == 0, trusted.out + trusted.err
    assert trusted.out.count("4 golden points within tolerance") == 3
    readme = (release / "README.md").read_text()
    assert (
        f'options.register_custom_ops_library("variants/fp16/operators/{HERE}/libfancy.so")'
        in readme
    )
    assert "verify . --run --trust-programs" in readme


def test_a_release_whose_library_was_replaced_is_refused(project, tmp_path):
    release = shutil.copytree(project.folder / "dist/tiny-1.0", tmp_path / "release")
    library = release / f"variants/int8/operators/{HERE}/libfancy.so"
    library.chmod(0o644)
    library.write_bytes(library.read_bytes() + b"\0")
    done = look_at(release, "--run", "--trust-programs")
    assert done.code == 4
    assert "operators/" in done.out + done.err


def test_without_a_node_or_a_translation_pytorchs_operator_is_named_with_its_line(project):
    project.write("neither.yaml", RECIPE.replace("name: tiny", "name: neither"))
    done = project("run", "neither.yaml")
    assert done.code == 1
    assert "can't translate your operator 'onnxbuild_demo::fancy' to ONNX" in done.out
    assert "at models/fancy.py:21" in done.out
    assert "export: {translations: FILE.py:CALLABLE}" in done.out


TABLE = """\
import torch
from onnxscript import FLOAT, script
from onnxscript import opset18 as op
from onnxscript.values import Opset


@script(Opset("demo.functions", 1))
def Fancy(x: FLOAT[...], scale: float) -> FLOAT[...]:
    return op.Mul(x, op.Sigmoid(op.Mul(x, op.Constant(value_float=scale))))


def translations():
    return {torch.ops.onnxbuild_demo.fancy.default: Fancy}
"""


def test_a_function_of_onnxs_own_operators_needs_no_library(project):
    project.write("models/table.py", TABLE)
    own = "export: {translations: models/table.py:translations, constant_folding: false}"
    text = RECIPE.replace("name: tiny", "name: portable").replace(", fp16: fp16", "")
    project.write("portable.yaml", text.replace("export: {exporter: torchscript}", own))
    done = project("run", "portable.yaml")
    assert done.code == 0, done.out + done.err
    for name in ("portable/fp32", "portable/int8"):
        bundle = bundle_of(project, name)
        manifest = json.loads((bundle / "manifest.json").read_text())
        assert "operators" not in manifest
        assert manifest["validation"]["cpu"]["passed"]
        assert {each.domain for each in onnx.load(bundle / "model.onnx").graph.node} <= {
            "", "com.microsoft",
        }  # fmt: skip
    session = onnxruntime.InferenceSession(bundle_of(project, "portable/fp32") / "model.onnx")
    assert session.run(None, {"input": np.ones((3, 4), np.float32)})[0].shape == (3, 2)
