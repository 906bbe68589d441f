"""`packages: {of: pipeline}`: each format packages a pipeline as it packages a variant."""

import pytest

from onnxbuild.core.host import HostFacts
from onnxbuild.resolver import resolve
from tests.written_recipes import faults, loader

RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {image: {dtype: float32, shape: [batch, 3, 8, 8]}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
outputs: [scores]
quantization: {fp32: none, int8: dynamic}
"""
PROCESSING = """\
processing:
  preprocess: [{image: {}}, {resize: {size: [8, 8]}}, {rescale: {}}, {to_nchw: {}}]
  postprocess: [{softmax: {}}]
  tolerances: {atol: 0.25}
"""
HOST = HostFacts("x86_64", frozenset({"avx2"}))


def graph_of(tmp_path, packages):
    load = loader(tmp_path, before=RECIPE + PROCESSING)
    return resolve(load(f"packages: {packages}\n").recipes, HOST)


def test_the_pipelines_bundle_reference_and_tolerances_are_taken(tmp_path):
    graph = graph_of(
        tmp_path, "{of: pipeline, variants: [int8], wheel: {}, triton: {}, mlflow: {}}"
    )
    made = {each.name: each for each in graph.deliverables}
    assert [name for name, each in made.items() if each.family == "package"] == [
        "int8-pipeline-triton", "int8-pipeline-mlflow", "int8-pipeline-wheel",
    ]  # fmt: skip
    steps = [
        graph.steps[f"demo:int8-pipeline-{each}/package"] for each in ("wheel", "triton", "mlflow")
    ]
    for step in steps:
        assert step.inputs["bundle"].step == "demo:int8-pipeline/package"
        assert step.inputs["reference"].step == "demo:int8-pipeline/reference"
    wheel = graph.steps["demo:int8-pipeline-wheel/run"]
    gate = graph.steps["demo:int8-pipeline/validate"]
    assert wheel.params.tolerances == gate.params.tolerances
    assert wheel.params.tolerances.atol == 0.25
    assert made["int8-pipeline-triton"].judged_by == made["int8-pipeline"].judged_by
    assert {each.variant for each in made.values()} == {"fp32", "int8"}


def test_both_are_packaged_where_both_are_asked_for(tmp_path):
    graph = graph_of(tmp_path, "{of: both, triton: {}}")
    assert [each.name for each in graph.deliverables if each.family == "package"] == [
        "fp32-triton", "fp32-pipeline-triton", "int8-triton", "int8-pipeline-triton",
    ]  # fmt: skip
    assert graph_of(tmp_path, "{triton: {}}").deliverables[1].name == "fp32-triton"


def test_an_ensemble_takes_the_variants_own_model_and_reference(tmp_path):
    graph = graph_of(tmp_path, "{of: both, triton: {ensemble: true}}")
    made = graph.steps["demo:int8-pipeline-triton/package"].inputs
    assert made["model"].step == graph.steps["demo:int8/package"].inputs["model"].step
    assert made["model-reference"].step == "demo:reference"
    assert "model" not in graph.steps["demo:int8-triton/package"].inputs


@pytest.mark.parametrize(
    ("before", "packages", "what", "fix"),
    [
        ("", "{of: pipeline, wheel: {}}", "the recipe has no `processing`", "remove `of`"),
        (
            PROCESSING + "  variants: [fp32]\n", "{of: both, wheel: {}}",
            "processing makes none of variant 'int8'", "add `int8` to processing.variants",
        ),
        (
            PROCESSING, "{of: both, variants: [fp32], wheel: {name: net}}",
            "for 2 bundles, whose wheels would replace each other", "write `name: net-{variant}`",
        ),
    ],
)  # fmt: skip
def test_what_can_not_be_packaged_is_refused_at_lint(tmp_path, before, packages, what, fix):
    load = loader(tmp_path, before=RECIPE + before)
    ((found, _, said),) = faults(load, f"packages: {packages}\n")
    assert what in found
    assert fix in said
