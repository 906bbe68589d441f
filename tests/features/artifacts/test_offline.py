import json
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest

from onnxbuild.features.artifacts.offline import KIND, OfflineOptions, OfflineParams
from onnxbuild.host.host import HostFacts
from onnxbuild.onnxkit.ahead_of_time.artifact_file import read_description
from onnxbuild.resolver import resolve
from tests.cli.conftest import project  # noqa: F401 - a fixture
from tests.fakes.step_context import run_step
from tests.steps.graphs import digits
from tests.written_recipes import loader

IMAGE = np.linspace(0, 1, 2 * 64, dtype=np.float32).reshape(2, 1, 8, 8)
RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
quantization: {fp32: none}
"""


def made(folder, source, **options):
    params = OfflineParams(OfflineOptions(**options))
    outcome, context = run_step(KIND, params, folder, {"model": source})
    return outcome, context.output("artifact")


def logits(path, level="ORT_DISABLE_ALL"):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, {"image": IMAGE})[0]


def domains(folder):
    return {node.domain for node in onnx.load(folder / "model.onnx").graph.node}


@pytest.mark.parametrize("level", ["basic", "extended"])
def test_it_computes_what_the_variant_does_and_has_no_layout_of_one_cpu(tmp_path, level):
    source = digits(tmp_path / "model")
    _, folder = made(tmp_path, source, level=level)
    np.testing.assert_allclose(
        logits(folder / "model.onnx"), logits(source / "model.onnx"), atol=1e-4
    )
    assert "com.microsoft.nchwc" not in domains(folder)
    assert read_description(folder).made_for is None


def test_basic_leaves_convolutions_apart_that_extended_fuses(tmp_path):
    source = digits(tmp_path / "model")
    _, basic = made(tmp_path / "basic", source, level="basic")
    outcome, extended = made(tmp_path / "extended", source)
    assert domains(basic) == {""}
    assert read_description(basic).facts == {"level": "basic", "runtime_operators": []}
    listed = read_description(extended).facts["runtime_operators"]
    assert "com.microsoft:FusedConv" in listed
    assert outcome.metrics["runtime_operators"] == len(listed)


def test_it_is_judged_at_all_points_and_as_it_will_be_loaded(tmp_path):
    load = loader(tmp_path, before=RECIPE)
    recipes = load(
        "session: {free_dimensions: {batch: 4}}\nahead_of_time: {offline: {at_load: all}}\n"
    )
    graph = resolve(recipes.recipes, HostFacts("x86_64", frozenset()))
    judged = graph.steps["demo:fp32-offline/validate"]
    assert judged.params.session.graph_optimization == "all"
    assert judged.params.session.free_dimensions == {}
    assert judged.inputs["reference"] != graph.steps["demo:fp32/validate"].inputs["reference"]
    assert graph.steps["demo:fp32-offline/make"].params.session.free_dimensions == {}
    (batch,) = graph.steps["demo:fp32-offline/package"].params.axes
    assert (batch.min, batch.max) == (1, 8)


@pytest.mark.slow
def test_a_recipe_lays_it_out_and_its_loader_runs(project):  # noqa: F811
    project.edit("tiny.yaml", "benchmark:", "ahead_of_time: {offline: {}}\nbenchmark:")
    done = project.run()
    assert done.code == 0, done.out + done.err
    folder = project.folder / "artifacts/out/tiny/fp32-offline"
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["kind"] == "offline"
    assert manifest["made_for"] is None
    assert manifest["validation"]["cpu"]["passed"]
    loads = json.loads((folder / "load-times.json").read_text())["loads"]
    assert set(loads) == {"portable", "offline"}
    shown = subprocess.run(
        [sys.executable, "load.py"], cwd=folder, capture_output=True, text=True, check=True
    )
    assert "output logits float32 [2, 2]" in shown.stdout
