"""The graph for this very CPU: what it holds, that it computes the same, who may load it."""

import importlib.util
import json

import numpy as np
import onnxruntime
import pytest

from onnxbuild.core.recipe import Axis
from onnxbuild.onnxkit.ahead_of_time.artifact_file import read_description
from onnxbuild.steps import package
from onnxbuild.steps.optimize_for_host import KIND, HostGraphParams
from tests.fakes.step_context import run_step
from tests.steps.graphs import digits

IMAGE = np.linspace(0, 1, 2 * 64, dtype=np.float32).reshape(2, 1, 8, 8)


def made(folder, source=None):
    source = source or digits(folder / "model")
    outcome, context = run_step(KIND, HostGraphParams(), folder, {"model": source})
    return outcome, context.output("artifact")


def run(path, level):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"image": IMAGE})[0]


def packaged(folder, source=None):
    source = source or digits(folder / "portable")
    _, artifact = made(folder / "make", source)
    validation = folder / "validation"
    validation.mkdir()
    reported = {"passed": True, "tolerances": {"atol": 1e-5}, "metrics": {"max_abs": 1e-7}}
    (validation / "report.json").write_text(json.dumps(reported))
    params = package.PackageAheadParams(
        "1.2.3", "digits", "ab" * 32, "fp32", "fp32", (Axis("batch", 1, 64, 2),)
    )
    inputs = {"model": source, "artifact": artifact, "validation": validation}
    _, context = run_step(package.AHEAD_OF_TIME, params, folder / "package", inputs)
    return context.output("bundle")


def loader(bundle):
    spec = importlib.util.spec_from_file_location("ahead_load", bundle / "load.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    return packaged(tmp_path_factory.mktemp("host"))


def changed(bundle, copy, change):
    """A copy of the bundle whose manifest says something else."""
    import shutil

    shutil.copytree(bundle, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    change(manifest)
    (copy / "manifest.json").write_text(json.dumps(manifest))
    return loader(copy)


def test_it_computes_the_same_with_nothing_left_to_optimize(tmp_path):
    source = digits(tmp_path / "model")
    _, folder = made(tmp_path, source)
    levels = onnxruntime.GraphOptimizationLevel
    expected = run(source / "model.onnx", levels.ORT_ENABLE_ALL)
    np.testing.assert_array_equal(run(folder / "model.onnx", levels.ORT_DISABLE_ALL), expected)
    assert read_description(folder).graph_optimization == "disable"


def test_the_same_model_gives_the_same_bytes(tmp_path):
    source = digits(tmp_path / "model")
    _, one = made(tmp_path / "one", source)
    _, other = made(tmp_path / "other" / "place", source)
    assert (one / "model.onnx").read_bytes() == (other / "model.onnx").read_bytes()


def test_operators_of_this_kind_of_cpu_are_reported(tmp_path):
    _, folder = made(tmp_path)
    special = read_description(folder).facts["host_specific_operators"]
    import onnx

    domains = {node.domain for node in onnx.load(str(folder / "model.onnx")).graph.node}
    assert bool(special) == ("com.microsoft.nchwc" in domains)


def test_the_manifest_says_what_it_was_made_for_and_both_sizes(bundle):
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["kind"] == "optimized"
    assert manifest["made_for"]["flags"]
    assert manifest["versions"]["onnxruntime"] == onnxruntime.__version__
    assert manifest["size_bytes"] == (bundle / "model.onnx").stat().st_size
    assert manifest["portable_size_bytes"] > 0
    assert "model.onnx" in (bundle / "SHA256SUMS").read_text()
    assert "artifact.json" not in {path.name for path in bundle.iterdir()}


def test_its_loader_runs_it_here(bundle):
    assert loader(bundle).load().run(None, {"image": IMAGE})[0].shape == (2, 10)


def test_its_loader_refuses_a_cpu_that_has_more_or_less(bundle, tmp_path):
    def change(manifest):
        flags = manifest["made_for"]["flags"]
        flag = next(name for name, there in flags.items() if not there)
        flags[flag] = True

    module = changed(bundle, tmp_path / "copy", change)
    with pytest.raises(module.OtherMachineError, match="without") as caught:
        module.load()
    assert "portable model of variant 'fp32'" in str(caught.value)
