"""Each step that makes a model: the same bytes in another process, folder, hash seed, with more threads."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

SCRIPT = """
import hashlib, json, sys
from pathlib import Path

import pytest

import pytest

from onnxbuild.core.recipe import DUMMY_DATA, Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.data.calibration_data import DataParams
from onnxbuild.steps import (
    balance, calibrate, convert_fp16, hessians, optimize, preprocess, quantize_dynamic,
    quantize_static, quantize_weights, round_weights,
)
from tests.fakes.step_context import run_step

sources, out = Path(sys.argv[1]), Path.cwd()


def made(name, kind, params, output="model", **inputs):
    folder = run_step(kind, params, out / name, inputs)[1].output(output)
    for path in sorted(folder.iterdir()):
        print(name, path.name, hashlib.sha256(path.read_bytes()).hexdigest())
    return folder


words = DummyInput("input_ids", "int64", ("batch", "sequence"), low=1, high=50)
mask = DummyInput("attention_mask", "int64", ("batch", "sequence"), fill=1)
axes = (Axis("batch", 1, 8, 4), Axis("sequence", 1, 32, 20))
options = optimize.OptimizeOptions()
bert = made(
    "optimize", optimize.KIND, optimize.OptimizeParams(options, (words, mask), axes),
    model=sources / "bert", config=sources / "config",
)
made("fp16", convert_fp16.KIND, convert_fp16.Fp16Params(convert_fp16.Fp16Options()), model=bert)
dynamic = quantize_dynamic.DynamicOptions(reduce_range=False)
made("dynamic", quantize_dynamic.KIND, quantize_dynamic.DynamicParams(dynamic), model=bert)
drawn = dict(data=Entrypoint(DUMMY_DATA), inputs=(words, mask), axes=axes, samples=4)
even = made("balance", balance.KIND, DataParams(**drawn), model=bert)
made("round", round_weights.KIND, round_weights.RoundParams(**drawn), model=even)
weights = quantize_weights.WeightOptions(method="hqq", op_types=("MatMul", "Gather"))
made("weights", quantize_weights.KIND, quantize_weights.WeightParams(weights), model=bert)
ready = made(
    "preprocess", preprocess.KIND, preprocess.PreprocessParams(), model=sources / "digits"
)
image = DummyInput("image", "float32", ("batch", 1, 8, 8))
data = Entrypoint(f"{sys.argv[2]}:calibration")
errors = made(
    "hessians", hessians.KIND, DataParams(data, (image,), (), 20, 0), "hessians",
    model=sources / "digits",
)
gptq = quantize_weights.WeightOptions(method="gptq")
made(
    "gptq", quantize_weights.KIND, quantize_weights.WeightParams(gptq),
    model=sources / "digits", hessians=errors,
)
ranges = made(
    "calibrate", calibrate.KIND,
    calibrate.CalibrateParams(data, (image,), calibrate.CalibrationOptions(samples=20)),
    "calibration", model=ready,
)
static = quantize_static.StaticOptions(activation_type="uint8", reduce_range=False)
made(
    "static", quantize_static.KIND, quantize_static.StaticParams(static),
    model=ready, calibration=ranges,
)
wide = quantize_static.StaticOptions(
    activation_type="int16", reduce_range=False, symmetric=False, bias_correction=True,
    nodes_to_exclude=("*Flatten*",),
)
for method in ("moving_average", "percentile", "entropy", "mse"):
    options = calibrate.CalibrationOptions(method=method, samples=20)
    grid = quantize_static.grid_for(wide, method)
    drawn = made(
        f"calibrate-{method}", calibrate.KIND,
        calibrate.CalibrateParams(data, (image,), options, (), grid, means=True), "calibration",
        model=ready,
    )
    made(
        f"static-{method}", quantize_static.KIND, quantize_static.StaticParams(wide),
        model=ready, calibration=drawn,
    )
"""


@pytest.mark.slow
def test_steps_make_the_same_bytes_in_another_process_folder_hash_seed_and_threads(tmp_path):
    from tests.steps.graphs import DIGITS, config, digits, tiny_bert

    tiny_bert(tmp_path / "bert")
    digits(tmp_path / "digits")
    config(tmp_path / "config", model_type="bert", num_heads=2, hidden_size=32)
    said = []
    for seed in ("1", "2"):
        folder = tmp_path / f"with-seed-{seed}"
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-B", "-c", SCRIPT, str(tmp_path), str(DIGITS)],
            cwd=folder, capture_output=True, text=True, timeout=300, check=False,
            env={**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": seed, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2000:]
        said.append(done.stdout)
    assert len(said[0].splitlines()) == 25
    assert said[0] == said[1]
