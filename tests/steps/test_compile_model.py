"""Compiled models (EPContext): a provider that compiles, and the reasons of those that don't."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.providers import all_providers
from onnxbuild.steps.compile_model import KIND, KIND_FOR_GPU, CompileParams
from tests.fakes.step_context import run_step
from tests.steps.graphs import digits

ROOT = Path(__file__).parents[2]
OPENVINO = os.environ.get("ONNXBUILD_OPENVINO_PYTHON", "")
"""An interpreter that has onnxruntime-openvino, onnx and numpy."""

COMPILE = """
import json, sys
from pathlib import Path
from onnxbuild.core.errors import StepError
from onnxbuild.steps.compile_model import KIND, CompileParams
from tests.fakes.step_context import run_step
params = CompileParams("openvino", {"device_type": "CPU"}, sys.argv[3] == "embed")
try:
    outcome, context = run_step(KIND, params, Path(sys.argv[2]), {"model": Path(sys.argv[1])})
except StepError as error:
    print(json.dumps({"refused": error.what}))
    raise SystemExit
import numpy, onnxruntime
session = onnxruntime.InferenceSession(
    str(context.output("artifact") / "model.onnx"),
    providers=[("OpenVINOExecutionProvider", {"device_type": "CPU"})])
image = numpy.ones((2, 1, 8, 8), "float32")
print(json.dumps({"providers": session.get_providers(), "metrics": dict(outcome.metrics),
    "logits": session.run(None, {"image": image})[0].tolist()}))
"""


def compiled(folder, provider, **options):
    params = CompileParams(provider, options, embed=True)
    return run_step(KIND, params, folder, {"model": digits(folder / "model")})


@pytest.mark.parametrize(
    "provider",
    [each for each in all_providers() if each.no_ep_context],
    ids=lambda each: each.name,
)
def test_a_provider_that_compiles_nothing_says_why(tmp_path, provider):
    with pytest.raises(StepError, match="has no compiled models") as caught:
        compiled(tmp_path, provider.name)
    assert provider.no_ep_context in caught.value.what
    assert "optimized" in caught.value.fix


def test_onnx_runtime_itself_says_so_of_its_cpu_provider(tmp_path):
    """What the table says of the CPU is what ONNX Runtime says: it would be a lie otherwise."""
    options = onnxruntime.SessionOptions()
    options.add_provider("CPUExecutionProvider", {})
    compiler = onnxruntime.ModelCompiler(
        options,
        str(digits(tmp_path) / "model.onnx"),
        flags=onnxruntime.OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED,
    )
    with pytest.raises(Exception, match="Unable to compile any nodes"):
        compiler.compile_to_file(str(tmp_path / "compiled.onnx"))


@pytest.mark.skipif(
    "TensorrtExecutionProvider" not in onnxruntime.get_available_providers()
    or Path("/proc/driver/nvidia/version").exists(),
    reason="TensorRT is not in this ONNX Runtime, or may load here",
)
def test_a_provider_that_does_not_load_is_no_compiler(tmp_path):
    with pytest.raises(StepError, match="did not load"):
        compiled(tmp_path, "tensorrt")


def test_what_is_compiled_for_a_gpu_has_it_in_its_key():
    assert set(KIND_FOR_GPU.toolchain) - set(KIND.toolchain) == {"gpu"}
    assert KIND_FOR_GPU.name != KIND.name


@pytest.mark.skipif(not OPENVINO, reason="ONNXBUILD_OPENVINO_PYTHON names no interpreter")
@pytest.mark.parametrize("embed", ["embed", "separate"])
def test_what_openvino_compiles_computes_the_same_or_is_refused(tmp_path, embed):
    """1.24.1 compiles the whole model and can't load it again; a version that can must be right."""
    model = digits(tmp_path / "model")
    command = [OPENVINO, "-c", COMPILE, str(model), str(tmp_path), embed]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout.splitlines()[-1])
    names = {path.name for path in (tmp_path / "out" / "artifact").iterdir()}
    assert {name for name in names if name.endswith(".bin")} == (
        set() if embed == "embed" else {"model_OpenVINOExecutionProvider.bin"}
    )
    if "refused" in reported:
        assert "compiled the model and can't load what it made" in reported["refused"]
        return
    assert reported["providers"][0] == "OpenVINOExecutionProvider"
    assert reported["metrics"]["nodes_left"] == 0
    session = onnxruntime.InferenceSession(str(model / "model.onnx"))
    (expected,) = session.run(None, {"image": np.ones((2, 1, 8, 8), "float32")})
    np.testing.assert_allclose(reported["logits"], expected, atol=1e-3)
