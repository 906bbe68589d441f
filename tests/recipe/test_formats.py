"""The key `formats`: what it takes, what it refuses."""

import pytest

from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances
from onnxbuild.recipe import stored
from onnxbuild.steps.aotinductor import AotInductorOptions
from onnxbuild.steps.torch_export import TorchExportOptions
from onnxbuild.steps.torchscript import TorchScriptOptions
from tests.written_recipes import faults, loader

RECIPE = """\
version: 1
name: demo
model: model.py:load
dummy_inputs: {ids: {dtype: int64, shape: [batch], high: 10}}
outputs: [logits]
dynamic_axes: {batch: {min: 1, max: 8, example: 2}}
"""


@pytest.fixture
def load(tmp_path):
    return loader(tmp_path, before=RECIPE, model="def load(): ...\ndef score(): ...\n")


def test_a_list_names_formats_with_their_defaults(load):
    (recipe,) = load("formats: [onnx, torchscript, torch-export, aotinductor]\n").recipes
    assert [(each.name, each.options, each.tolerances) for each in recipe.formats] == [
        ("torchscript", TorchScriptOptions("trace", True), None),
        ("torch-export", TorchExportOptions(False), None),
        ("aotinductor", AotInductorOptions(), None),
    ]
    assert [str(each.location) for each in recipe.formats] == [
        "demo.yaml:7:17", "demo.yaml:7:30", "demo.yaml:7:44",
    ]  # fmt: skip
    assert [variant.name for variant in recipe.variants] == ["fp32"]


def test_a_mapping_gives_options_and_tolerances(load):
    text = "formats: {torchscript: {method: script, freeze: false, validate: {atol: 1e-3, "
    (recipe,) = load(text + "outputs: {logits: {rtol: 1}}}}}\n").recipes
    (found,) = recipe.formats
    assert found.options == TorchScriptOptions("script", False)
    assert found.tolerances == VariantTolerances(atol=1e-3, outputs={"logits": Tolerance(rtol=1)})


def test_without_onnx_there_are_no_variants(load):
    (recipe,) = load("formats: [torchscript]\n").recipes
    assert recipe.variants == ()


def test_recipes_with_formats_are_remembered(load):
    loaded = load("formats: {onnx: {}, torchscript: {validate: {atol: 1}}, aotinductor: {}}\n")
    text = stored.to_text(loaded)
    assert text is not None
    assert stored.from_text(text).recipes[0].formats == loaded.recipes[0].formats


def test_variants_and_scores_need_onnx(load):
    text = "formats: [torchscript]\nquantization: {int8: dynamic}\n"
    text += "evaluate: {data: model.py:load, metric: model.py:score}\n"
    first, second = faults(load, text)
    assert first == (
        "quantization is written, and formats leaves out onnx; its variants are ONNX models",
        "demo.yaml:8:1",
        "add `onnx` to formats, or remove `quantization`",
    )
    assert second[0].startswith("evaluate is written, and formats leaves out onnx; ")


def test_a_variant_has_not_the_name_of_a_format(load):
    ((what, where, fix),) = faults(load, "quantization: {torchscript: none}\n")
    assert what == "variant 'torchscript' has the name of a format; both would be in one folder"
    assert where == "demo.yaml:7:16"
    assert fix == "rename it, such as `torchscript-onnx`"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("formats: [torchscrpt]\n", "torchscript"),
        ("formats: {onnx: {freeze: true}}\n", "freeze"),
        ("formats: [onnx, onnx]\n", "twice"),
    ],
)
def test_a_mistake_is_reported_with_what_is_meant(load, text, reported):
    ((what, where, fix),) = faults(load, text)
    assert reported in f"{what} {fix}"
    assert where.startswith("demo.yaml:7:")
    assert fix


def test_tolerances_name_outputs_that_there_are(load):
    text = "formats: {aotinductor: {validate: {outputs: {logit: {atol: 1}}}}}\n"
    ((what, _, fix),) = faults(load, text)
    assert what.startswith(
        "formats.aotinductor.validate.outputs names 'logit', which is no output"
    )
    assert fix == "write `logits`"
