"""What each frontend gives the benchmark to compare with, in the graph."""

import dataclasses

import pytest

from onnxbuild.catalog import FRONTENDS
from onnxbuild.core.environment import Environment
from onnxbuild.core.target import CPU_TARGET
from onnxbuild.host.host import HostFacts
from onnxbuild.onnxkit.benchmark.baseline import Baseline, on_target
from onnxbuild.onnxkit.benchmark.baselines import RUNNERS
from onnxbuild.recipe.load import load_recipes
from onnxbuild.resolver import resolve
from tests.steps.graphs import RECIPES
from tests.written_recipes import faults, loader

HOST = HostFacts("x86_64", frozenset({"avx2", "avx512_vnni"}))
PYTORCH = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {x: {dtype: float32, shape: [batch, 4]}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
"""


@pytest.fixture
def benchmark_of():
    """The step that measures a recipe of this repository."""

    def benchmark_of(name, **settings):
        path = RECIPES / f"{name}.yaml"
        loaded = load_recipes(path, project=RECIPES.parent, overrides=settings)
        graph = resolve(loaded.recipes, HOST)
        return graph, graph.steps[f"{name}:benchmark"]

    return benchmark_of


@pytest.mark.parametrize(
    ("recipe", "runner", "toolchain"),
    [
        ("digits", "pytorch", ()),
        ("digits_torchscript", "pytorch", ()),
        ("diabetes", "xgboost", ("xgboost", "scikit-learn")),
        ("digits_tflite", "tensorflow-lite", ("tensorflow",)),
        ("vad", "onnx-as-given", ()),
    ],
)
def test_a_frontend_says_how_its_original_is_run(benchmark_of, recipe, runner, toolchain):
    _, step = benchmark_of(recipe)
    assert step.params.baseline.runner == runner
    assert step.code == toolchain
    assert RUNNERS[runner].how


def test_a_framework_of_its_own_environment_runs_there(benchmark_of):
    graph, step = benchmark_of("digits_jax")
    reference = graph.steps["digits_jax:reference"].params.environment
    assert step.params.environment == reference is not None


def test_a_model_that_is_onnx_is_measured_as_it_was_imported(benchmark_of):
    _, step = benchmark_of("vad")
    assert step.inputs["baseline"].step == "vad:import"


def test_every_frontend_of_this_package_has_one():
    assert {name for name, each in FRONTENDS.items() if each.baseline is None} <= {
        "exported",
        "torchscript",
    }  # modules of PyTorch, as `gives_module` says
    assert all(each.baseline or each.gives_module for each in FRONTENDS.values())


def test_a_target_with_an_environment_leaves_no_room_for_the_frameworks():
    baseline = Baseline("jax", environment=Environment(requirements="jax.txt"))
    target = dataclasses.replace(CPU_TARGET, environment=Environment(requirements="openvino.txt"))
    there = on_target(baseline, target)
    assert there.environment is None
    assert there.baseline.runner == ""
    assert "list jax.txt, and the target 'cpu' has an environment" in there.baseline.absent
    assert on_target(baseline, CPU_TARGET).environment == baseline.environment


def test_without_a_baseline_the_step_needs_no_framework(benchmark_of):
    _, step = benchmark_of("digits_jax", **{"benchmark.baseline": "false"})
    assert step.params.environment is None
    assert step.code == ()
    assert step.params.baseline.absent == "`benchmark.baseline` is false"


def test_compiling_by_pytorch_needs_a_module(tmp_path):
    text = PYTORCH.replace("model: model.py:load", "frontend: sklearn\nmodel: model.py:load")
    load = loader(tmp_path, before=text)
    ((what, _, _),) = faults(load, "benchmark: {compile: true}\n")
    assert what.startswith("benchmark.compile needs the frontend 'pytorch'")
    assert load("benchmark: {compile: false}\n").recipes
    assert loader(tmp_path, before=PYTORCH)("benchmark: {compile: true}\n").recipes
