"""The key `ahead_of_time`: what it takes, what it refuses."""

import pytest

from onnxbuild.expansion.requested import AheadOfTimeOptions
from onnxbuild.onnxkit.ahead_of_time.options import (
    CompiledOptions,
    OptimizedOptions,
    OrtFormatOptions,
)
from tests.written_recipes import faults, loader

RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
"""
VARIANTS = "quantization: {fp32: none, int8: dynamic}\n"


@pytest.fixture
def load(tmp_path):
    return loader(tmp_path, before=RECIPE)


def test_each_kind_takes_its_options(load):
    (recipe,) = load(
        VARIANTS + "ahead_of_time: {variants: [int8], ort: {platform: amd64, style: runtime}, "
        "optimized: {}, compiled: {provider: openvino, embed: false}, load_times: false}\n"
    ).recipes
    section = recipe.section("ahead_of_time", AheadOfTimeOptions)
    assert (section.variants, section.load_times) == (("int8",), False)
    assert {key: section.options_of(key) for key in section.requested} == {
        "ort": OrtFormatOptions("amd64", "runtime", True),
        "optimized": OptimizedOptions(),
        "compiled": CompiledOptions("openvino", embed=False),
    }


@pytest.mark.parametrize(
    ("text", "what", "fix"),
    [
        ("variants: [int4], ort: {}", "'int4', which is no variant", "int8"),
        ("load_times: true", "names nothing to make", "ort: {}"),
        ("compiled: {provider: cpu}", "'cpu', which has no compiled models", "optimized: {}"),
        ("compiled: {provider: opnvino}", "did you mean 'openvino'?", "write openvino"),
    ],
)
def test_what_does_not_fit_is_reported_with_its_fix(load, text, what, fix):
    ((found, where, mended),) = faults(load, f"{VARIANTS}ahead_of_time: {{{text}}}\n")
    assert what in found
    assert ":7:" in where
    assert fix in mended


def test_without_onnx_there_is_nothing_to_make_it_of(load):
    ((what, _, fix),) = faults(load, "formats: [torchscript]\nahead_of_time: {ort: {}}\n")
    assert "formats leaves out onnx" in what
    assert "add `onnx`" in fix


@pytest.mark.parametrize(
    ("kind", "provider", "asked"),
    [("compiled", "openvino", "{provider: openvino}"), ("tensorrt", "tensorrt", "{}")],
)
def test_what_is_in_an_environment_alone_compiles_nothing_here(load, kind, provider, asked):
    text = f"{VARIANTS}ahead_of_time: {{{kind}: {asked}}}\n"
    elsewhere = f"providers: {{npu: {{provider: {provider}, environment: {{python: p}}}}, MORE}}\n"
    ((found, _, mended),) = faults(load, text + elsewhere.replace("MORE", "cpu: {}"))
    assert (
        f"ahead_of_time.{kind} compiles with the ONNX Runtime of onnxbuild's environment" in found
    )
    assert "target 'npu'" in found
    assert f"remove `{kind}`" in mended
    assert load(text + elsewhere.replace("MORE", f"{provider}: {{}}")).recipes
