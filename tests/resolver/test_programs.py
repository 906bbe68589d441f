"""Formats other than ONNX in the graph: their steps, what they share, what they leave alone."""

import pytest

from onnxbuild.core.digest import tagged_sha256
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.expansion.scope import Comparison, ComparisonModel
from onnxbuild.host.host import HostFacts
from onnxbuild.lock.make import resolved_recipe
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.resolver import resolve
from tests.written_recipes import loader

HOST = HostFacts("x86_64", frozenset({"avx2", "avx512_vnni"}))
RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
"""
ALL = "formats: [onnx, torchscript, torch-export, aotinductor]\n"


@pytest.fixture
def load(tmp_path):
    from_text = loader(tmp_path, before=RECIPE)
    return lambda text: from_text(text).recipes


def local(graph):
    return [name.partition(":")[2] for name in graph.steps]


def test_each_format_is_made_judged_packaged_and_laid_out(load):
    graph = resolve(load(ALL), HOST)
    for name in ("torchscript", "torch-export", "aotinductor"):
        assert {f"{name}/convert", f"{name}/validate", f"{name}/package"} <= set(local(graph))
    assert [view.name for view in graph.deliverables] == [
        "fp32", "torchscript", "torch-export", "aotinductor",
    ]  # fmt: skip
    assert graph.deliverables[1].parts == (
        (OutputRef("demo:torchscript/package", "bundle"), ""),
        (OutputRef("demo:benchmark", "report"), "benchmark.json"),
    )
    reference = graph.steps["demo:aotinductor/validate"].inputs["reference"]
    assert reference == graph.steps["demo:fp32/validate"].inputs["reference"]


def test_aotinductor_compiles_what_torch_export_made(load):
    graph = resolve(load(ALL), HOST)
    source = graph.steps["demo:aotinductor/convert"].inputs["program"]
    assert source == OutputRef("demo:torch-export/convert", "program")
    assert graph.aliases["demo:aotinductor/export"] == "demo:torch-export/convert"

    alone = resolve(load("formats: [aotinductor]\n"), HOST)
    assert local(alone) == [
        "aotinductor/export", "aotinductor/convert", "benchmark", "reference",
        "aotinductor/validate", "aotinductor/package",
    ]  # fmt: skip


def test_formats_change_no_other_step_and_no_other_recipe(load):
    plain, asked = load(""), load(ALL)
    without, others = resolve(plain, HOST), resolve(asked, HOST)
    for name, step in without.steps.items():
        assert others.steps[name].params == step.params
        if name != "demo:benchmark":
            assert others.steps[name].inputs == step.inputs
    assert "formats" not in resolved_recipe(plain[0])
    assert list(resolved_recipe(asked[0])["formats"]) == [
        "torchscript",
        "torch-export",
        "aotinductor",
    ]
    assert tagged_sha256("r", resolved_recipe(plain[0])) == tagged_sha256(
        "r", resolved_recipe(load("formats: [onnx]\n")[0])
    )


def test_tolerances_are_the_formats_own_then_those_of_fp32(load):
    text = "validate: {fp32: {atol: 0.5}}\nformats: {torchscript: {}, torch-export: {validate: {rtol: 1}}}\n"
    graph = resolve(load(text), HOST)
    first, second = (
        graph.steps[f"demo:{name}/validate"].params.tolerances
        for name in ("torchscript", "torch-export")
    )
    assert first == VariantTolerances(atol=0.5, rtol=1e-4, equal_min=1.0)
    assert second == VariantTolerances(atol=0.5, rtol=1, equal_min=1.0)


STEPS = {"reference", "torchscript/convert", "torchscript/validate", "torchscript/package"}


def measured(graph, step="demo:benchmark"):
    return list(graph.steps[step].inputs)


@pytest.mark.parametrize("only", ["torchscript", "demo:torchscript"])
def test_only_takes_the_name_of_a_format_and_measures_that_alone(load, only):
    graph = resolve(load(ALL), HOST, [only])
    assert set(local(graph)) == {*STEPS, "benchmark"}
    assert measured(graph) == ["program/torchscript"]


def test_only_a_format_and_a_variant_measures_both_and_a_step_of_onnx_is_found_next_to_it(load):
    assert measured(resolve(load(ALL), HOST, ["fp32", "torchscript"])) == [
        "program/torchscript",
        "model/fp32",
    ]
    assert "check" in local(resolve(load(ALL), HOST, ["torchscript", "check"]))


def test_programs_are_measured_once_next_to_what_runs_on_the_cpu(load):
    graph = resolve(load(f"{ALL}providers: [cuda, cpu]\n"), HOST)
    programs = ["program/torchscript", "program/torch-export", "program/aotinductor"]
    assert measured(graph, "demo:benchmark-cpu")[:3] == programs
    assert not set(programs).intersection(measured(graph))
    others = graph.deliverables[-1].parts[1]
    assert others == (OutputRef("demo:benchmark-cpu", "report"), "benchmark.json")


def test_bench_measures_programs_next_to_a_model_from_elsewhere(load):
    model = Entrypoint("files", files=("model.onnx",))
    comparison = Comparison((ComparisonModel("theirs", "model.onnx", model),), "now")
    graph = resolve(load("formats: [torchscript]\n"), HOST, comparison=comparison)
    assert local(graph) == ["torchscript/convert", "against=theirs", "benchmark"]
    assert measured(graph) == ["program/torchscript", "model/theirs"]


def test_a_formats_name_stands_for_what_measures_it_wherever_that_is(load):
    text = "formats: [onnx, torchscript]\nproviders: [cuda, cpu]\n"
    whole, part = resolve(load(text), HOST), resolve(load(text), HOST, ["torchscript"])
    measuring = [
        name for name, step in whole.steps.items() if "program/torchscript" in step.inputs
    ]
    assert measuring == ["demo:benchmark-cpu"]
    assert "demo:benchmark-cpu" in part.steps
    assert "demo:benchmark" not in part.steps
