"""What is made ahead of time, in the graph: its steps, its folders, what it leaves alone."""

import pytest

from onnxbuild.catalog import CATALOG
from onnxbuild.core.step import GPU
from onnxbuild.host.host import HostFacts
from onnxbuild.onnxkit.ahead_of_time.ort_format import REPLAY
from onnxbuild.providers import all_providers
from onnxbuild.resolver import resolve
from tests.written_recipes import loader

HOST = HostFacts("x86_64", frozenset({"avx2", "avx512_vnni"}))
RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
quantization: {fp32: none, int8: dynamic}
"""


@pytest.fixture
def graph_of(tmp_path):
    load = loader(tmp_path, before=RECIPE)
    return lambda text: resolve(load(text).recipes, HOST)


def test_each_artifact_of_each_variant_is_made_judged_packaged_and_laid_out(graph_of):
    graph = graph_of("ahead_of_time: {ort: {}, optimized: {}}\n")
    for name in ("fp32-ort", "fp32-optimized", "int8-ort", "int8-optimized"):
        assert {f"demo:{name}/{step}" for step in ("make", "validate", "package")} <= set(
            graph.steps
        )
    assert [view.name for view in graph.deliverables] == [
        "fp32", "int8", "fp32-ort", "fp32-optimized", "int8-ort", "int8-optimized",
    ]  # fmt: skip
    made = graph.steps["demo:int8-ort/make"].inputs["model"]
    assert made == graph.steps["demo:int8/validate"].inputs["model"]
    judged = graph.steps["demo:int8-ort/validate"]
    assert judged.inputs["model"].step == "demo:int8-ort/make"
    assert judged.inputs["reference"] == graph.steps["demo:int8/validate"].inputs["reference"]
    assert judged.params.tolerances == graph.steps["demo:int8/validate"].params.tolerances


def test_load_times_are_measured_once_a_variant_next_to_the_portable_model(graph_of):
    graph = graph_of("ahead_of_time: {ort: {}, optimized: {}}\n")
    measured = graph.steps["demo:fp32-load-times"]
    assert set(measured.inputs) == {"model", "reference", "artifact/ort", "artifact/optimized"}
    assert (
        "demo:fp32-load-times"
        not in graph_of("ahead_of_time: {ort: {}, load_times: false}\n").steps
    )


def test_saved_runtime_optimizations_are_judged_as_they_are_replayed(graph_of):
    fixed = graph_of("ahead_of_time: {ort: {}}\n").steps["demo:fp32-ort/validate"]
    runtime = graph_of("ahead_of_time: {ort: {style: runtime}}\n").steps["demo:fp32-ort/validate"]
    assert fixed.params.session.config == {}
    assert runtime.params.session.config == REPLAY


def test_the_graph_for_this_cpu_is_that_of_the_variants_session(graph_of):
    graph = graph_of(
        "session: {free_dimensions: {batch: 4}}\nahead_of_time: {ort: {}, optimized: {}}\n"
    )
    made = graph.steps["demo:fp32-optimized/make"].params.session
    assert made.free_dimensions == {"batch": 4}
    judged = graph.steps["demo:fp32-optimized/validate"]
    assert judged.params.session.graph_optimization == "disable"
    assert judged.inputs["reference"] == graph.steps["demo:fp32/validate"].inputs["reference"]
    portable = graph.steps["demo:fp32-ort/validate"]
    assert portable.inputs["reference"] != judged.inputs["reference"]
    (batch,) = graph.steps["demo:fp32-optimized/package"].params.axes
    assert (batch.min, batch.max) == (4, 4)


def test_a_provider_compiles_with_the_options_that_the_recipe_gives_it(graph_of):
    graph = graph_of(
        "providers: {cpu: {}, openvino: {device_type: GPU}}\n"
        "ahead_of_time: {compiled: {provider: openvino}}\n"
    )
    params = graph.steps["demo:fp32-compiled/make"].params
    assert params.provider == "openvino"
    assert params.provider_options["device_type"] == "GPU"
    assert graph.steps["demo:fp32-compiled/validate"].params.target.name == "openvino"


def test_what_is_for_a_gpu_has_it_in_its_key_and_nothing_else_has(graph_of):
    graph = graph_of("ahead_of_time: {tensorrt: {}, compiled: {provider: tensorrt}, ort: {}}\n")
    kinds = {name: CATALOG[step.kind] for name, step in graph.steps.items()}
    keyed = {name for name, kind in kinds.items() if GPU in kind.toolchain}
    assert keyed == {
        "demo:fp32-tensorrt/make", "demo:fp32-compiled/make",
        "demo:int8-tensorrt/make", "demo:int8-compiled/make",
    }  # fmt: skip


@pytest.mark.parametrize("provider", [each for each in all_providers() if not each.no_ep_context])
def test_what_is_compiled_for_a_gpu_has_the_gpu_in_its_key(graph_of, provider):
    graph = graph_of(f"ahead_of_time: {{compiled: {{provider: {provider.full_name}}}}}\n")
    kind = CATALOG[graph.steps["demo:fp32-compiled/make"].kind]
    assert (GPU in kind.toolchain) == (provider.name in ("tensorrt", "nv_tensorrt_rtx"))
