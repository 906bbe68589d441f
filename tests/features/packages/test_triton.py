import pytest

from onnxbuild.host.host import HostFacts
from onnxbuild.resolver import resolve
from tests.written_recipes import faults, loader

RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
quantization: {fp32: none, int8: dynamic}
"""
HOST = HostFacts("x86_64", frozenset({"avx2"}))


def test_each_variant_asked_for_gets_its_own_repository_judged_by_the_bundles_gates(tmp_path):
    load = loader(tmp_path, before=RECIPE)
    graph = resolve(load("packages: {variants: [int8], triton: {instances: 2}}\n").recipes, HOST)
    assert [each.name for each in graph.deliverables] == ["fp32", "int8", "int8-triton"]
    made = graph.steps["demo:int8-triton/package"]
    assert (made.params.name, made.params.target) == ("demo-int8", "cpu")
    assert made.inputs["bundle"].step == "demo:int8/package"
    assert graph.deliverables[-1].judged_by == graph.deliverables[1].judged_by


def test_the_model_has_the_name_and_the_target_that_are_asked_for(tmp_path):
    load = loader(tmp_path, before=RECIPE)
    text = "providers: [cpu, cuda]\npackages: {triton: {name: 'net_{variant}', target: cuda}}\n"
    graph = resolve(load(text).recipes, HOST)
    params = graph.steps["demo:int8-triton/package"].params
    assert (params.name, params.target) == ("net_int8", "cuda")


@pytest.mark.parametrize(
    ("options", "what", "fix"),
    [
        ("name: net", "for 2 bundles, which Triton could not tell apart", "`name: net-{variant}`"),
        ("max_queue_delay_us: 5", "`dynamic_batching` is off", "add `dynamic_batching: true`"),
        ("max_batch_size: 9", "axis 'batch' takes 1 to 8", "write `max_batch_size: 8`"),
        ("instance_groups: [{device: cpu, gpus: [0]}]", "names GPUs for `device: cpu`",
         "`device: gpu`"),
        ("ensemble: true", "a model without `processing` is one graph", "remove `ensemble`"),
    ],
)  # fmt: skip
def test_what_triton_can_not_serve_is_refused_at_lint(tmp_path, options, what, fix):
    load = loader(tmp_path, before=RECIPE)
    ((found, where, said),) = faults(load, f"packages: {{triton: {{{options}}}}}\n")
    assert what in found
    assert fix in said
    assert ".yaml:7:" in where


@pytest.mark.parametrize(
    ("inputs", "axis", "why"),
    [
        ("{ids: {dtype: int64, shape: [4], high: 9}}", "", "no axis of dynamic_axes is the first"),
        (
            "{a: {dtype: float32, shape: [batch, batch]}}",
            "min: 1",
            "is also another than the first",
        ),
    ],
)
def test_inputs_that_can_not_be_batched_are_refused_at_lint(tmp_path, inputs, axis, why):
    axes = f"dynamic_axes: {{batch: {{{axis}, max: 8, example: 4}}}}\n" if axis else ""
    head = f"version: 1\nname: demo\nmodel: model.py:load\ndummy_inputs: {inputs}\n{axes}"
    load = loader(tmp_path, before=f"{head}quantization: {{fp32: none}}\n")
    ((what, _, fix),) = faults(load, "packages: {triton: {dynamic_batching: true}}\n")
    assert what.startswith("packages.triton.dynamic_batching asks for batches, and ")
    assert why in what
    assert "give all inputs and outputs one first axis with `min: 1`" in fix


def test_an_ensemble_takes_the_variants_own_model_and_reference(tmp_path):
    head = "version: 1\nname: demo\nmodel: model.py:load\noutputs: [scores]\n"
    head += "dummy_inputs: {image: {dtype: float32, shape: [batch, 3, 8, 8]}}\n"
    head += "dynamic_axes: {batch: {min: 1, max: 8, example: 2}}\nquantization: {int8: dynamic}\n"
    processing = "processing: {postprocess: [{softmax: {}}]}\n"
    load = loader(tmp_path, before=head + processing)
    graph = resolve(load("packages: {triton: {ensemble: true}}\n").recipes, HOST)
    made = graph.steps["demo:int8-pipeline-triton/package"]
    assert made.params.name == "demo-int8-pipeline"
    assert made.inputs["model"].step == graph.steps["demo:int8/package"].inputs["model"].step
    assert made.inputs["reference"].step == "demo:int8-pipeline/reference"
    assert made.inputs["model-reference"].step == "demo:reference"
    assert "model" not in graph.steps["demo:int8-triton/package"].inputs
    ((what, _, _),) = faults(load, "packages: {variants: [int8], triton: {ensemble: true}}\n")
    assert "no pipeline is packaged" in what
