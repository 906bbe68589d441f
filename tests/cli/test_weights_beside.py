"""Weights in a file of their own, through every mode, by the real command: the way of large models."""

import json

import numpy as np
import onnx
import onnxruntime

from onnxbuild.onnxkit.model.model_files import load_model
from tests.cli.conftest import RECIPE

MODES = """\
quantization:
  fp32: none
  int8: {mode: dynamic, balance: true, rounding: gptq}
  static: {mode: static, bias_correction: true}
  int4: {mode: weight_only, method: gptq}
"""
VARIANTS = ("fp32", "int8", "static", "int4")
DATA = """\
import numpy as np

def feeds():
    for seed in range(4):
        yield {"input": np.random.default_rng(seed).standard_normal((8, 4), np.float32)}
"""
OPTIONS = """\
export: {exporter: torchscript, external_data: always}
calibration: {data: models/data.py:feeds, samples: 4}
validate: {int8: {cosine_min: 0.5}, int4: {cosine_min: 0.5}}
"""


def test_every_mode_takes_a_model_whose_weights_lie_next_to_its_graph(project):
    recipe = RECIPE.replace("load}", "load, args: {width: 300}}")
    recipe = recipe.replace("quantization: {fp32: none}\n", MODES) + OPTIONS
    project.write("models/data.py", DATA)
    project.write("tiny.yaml", recipe)
    packages = [word for name in VARIANTS for word in ("--only", f"{name}/package")]
    done = project.run(*packages)
    assert done.code == 0, done.err + done.out
    out = project.folder / "artifacts/out/tiny"
    blobs = {p.stat().st_ino for p in (project.folder / "artifacts/cas").rglob("*")}
    for variant in VARIANTS:
        folder = out / variant
        assert (folder / "model.onnx.data").stat().st_size > 1024
        assert (folder / "model.onnx.data").stat().st_ino not in blobs
        onnx.checker.check_model(str(folder / "model.onnx"))
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
        (logits,) = session.run(None, {"input": np.ones((3, 4), np.float32)})
        assert logits.shape == (3, 2)
        sums = (folder / "SHA256SUMS").read_text()
        assert "  model.onnx.data\n" in sums
    again = project.run(*packages)
    assert (again.code, again.ran) == (0, [])
    assert all(tensor.data_location == 0 for tensor in load_model(out / "fp32").graph.initializer)
    diagnosed = project("diagnose", "tiny.yaml:int4")
    assert diagnosed.code == 0, diagnosed.err
    assert "first step where the error appears: tiny:int4/quantize" in diagnosed.out
    found = project("inspect", str(out / "fp32" / "model.onnx"), "--json")
    assert found.code == 0
    assert json.loads(found.out)
    assert not [p for p in (project.folder / "artifacts/tmp").iterdir() if p.is_dir()]
