"""Axes with rules, through export, reference and validate: multiples, empty sizes, sums."""

from pathlib import Path

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.target import CPU_TARGET, TargetGates
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.data.feeds import check_feeds
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.model.inspect import summarize
from onnxbuild.onnxkit.model.model_files import load_model
from onnxbuild.steps import export, reference, torch_export, validate
from tests.fakes.step_context import run_step

MODULES = Path(__file__).parent / "axis_modules.py"

IMAGE = (DummyInput("image", "float32", ("batch", 1, "height", "width")),)
IMAGE_AXES = (
    Axis("batch", 1, 4, 2),
    Axis("height", 16, 128, 32, multiple_of=16),
    Axis("width", 16, 128, 32, multiple_of=16),
)
CACHED = (
    DummyInput("x", "float32", ("batch", "sequence", 8)),
    DummyInput("past_key", "float32", ("batch", "past", 8)),
    DummyInput("past_value", "float32", ("batch", "past", 8)),
    DummyInput("mask", "float32", ("batch", "past + sequence"), fill=1),
)
CACHED_AXES = (Axis("batch", 1, 4, 2), Axis("past", 0, 16, 5), Axis("sequence", 1, 16, 3))
MODELS = {"UNet": (IMAGE, IMAGE_AXES), "CachedAttention": (CACHED, CACHED_AXES)}


def exported(folder, name, exporter, axes=None):
    inputs, declared = MODELS[name]
    params = export.ExportParams(
        model=Entrypoint(f"{MODULES}:load", {"name": name}),
        inputs=inputs,
        outputs=(),
        axes=axes or declared,
        opset=18,
        translations=None,
        options=export.ExportOptions(exporter=exporter),
    )
    return run_step(export.KIND, params, folder)[1].output("model")


def referenced(folder, name, points=()):
    inputs, axes = MODELS[name]
    params = reference.ReferenceParams(
        Entrypoint(f"{MODULES}:load", {"name": name}),
        inputs,
        (),
        axes,
        None,
        reference.ReferenceOptions(points=points),
    )
    return run_step(reference.KIND, params, folder)[1].output("reference")


def validated(folder, model, found):
    params = validate.ValidateParams(
        "fp32", "fp32", VariantTolerances(1e-5, 1e-4), CPU_TARGET, TargetGates()
    )
    return run_step(validate.KIND, params, folder, {"model": model, "reference": found})[0]


@pytest.mark.parametrize(
    "exporter", [pytest.param("dynamo", marks=pytest.mark.slow), "torchscript"]
)
@pytest.mark.parametrize("name", MODELS)
def test_a_model_whose_axes_have_rules_is_exported_and_matches_at_every_point(
    tmp_path, name, exporter
):
    model = exported(tmp_path / "export", name, exporter)
    found = referenced(tmp_path / "reference", name)
    outcome = validated(tmp_path / "validate", model, found)
    assert outcome.findings == ()
    assert outcome.metrics["points_passed"] == outcome.metrics["points"] > 4
    shapes = {each["name"]: each["shape"] for each in summarize(load_model(model))["inputs"]}
    assert shapes == {each.name: list(each.shape) for each in MODELS[name][0]}


def test_an_empty_cache_is_a_point_with_and_without_a_single_token(tmp_path):
    found = {p.name: p for p in read_reference(referenced(tmp_path, "CachedAttention"))}
    assert found["min"].sizes == {"batch": 1, "past": 0, "sequence": 1}
    assert found["empty-past"].sizes == {"batch": 2, "past": 0, "sequence": 3}
    assert found["empty-past"].feeds["past_key"].shape == (2, 0, 8)
    assert found["empty-past"].feeds["mask"].shape == (2, 3)
    assert found["max-past"].feeds["mask"].shape == (2, 19)


@pytest.mark.slow
def test_torch_export_keeps_multiples_and_sums_dynamic(tmp_path):
    import torch

    for name, (inputs, axes) in MODELS.items():
        params = torch_export.TorchExportParams(
            Entrypoint(f"{MODULES}:load", {"name": name}),
            inputs,
            (),
            axes,
            torch_export.TorchExportOptions(),
        )
        made = run_step(torch_export.KIND, params, tmp_path / name)[1].output("program")
        program = torch.export.load(str(made / "model.pt2")).module()
        for point in read_reference(referenced(tmp_path / f"{name}-reference", name)):
            tensors = [torch.from_numpy(array) for array in point.feeds.values()]
            for expected, actual in zip(point.outputs.values(), program(*tensors), strict=True):
                np.testing.assert_allclose(actual.numpy(), expected, atol=1e-5)


def test_a_size_that_only_multiples_fit_is_reported_with_the_rule_to_type(tmp_path):
    free = tuple(Axis(axis.name, 1, axis.max, axis.example) for axis in IMAGE_AXES)
    with pytest.raises(StepError) as caught:
        exported(tmp_path, "UNet", "torchscript", free)
    what = "axes 'height' and 'width' take multiples of 16 alone: forward fails at batch=2, "
    assert caught.value.what.startswith(what)
    assert caught.value.fix == (
        "write `height: {min: 16, max: 128, example: 32, multiple_of: 16}` and "
        "`width: {min: 16, max: 128, example: 32, multiple_of: 16}` in `dynamic_axes`"
    )


def test_a_sample_whose_sum_or_multiple_is_wrong_is_refused():
    x, cache = np.ones((2, 3, 8), np.float32), np.ones((2, 4, 8), np.float32)
    feeds = {"x": x, "past_key": cache, "past_value": cache, "mask": np.ones((2, 6), np.float32)}
    with pytest.raises(StepError) as caught:
        check_feeds(feeds, CACHED, "m:reference", CACHED_AXES)
    assert caught.value.what == (
        "input 'mask' has size 6 along 'past + sequence'; expected 7, as 'batch' is 2, "
        "'sequence' is 3, 'past' is 4"
    )
    assert caught.value.fix == "give 'mask' 7 elements along axis 1"
    check_feeds(feeds | {"mask": np.ones((2, 7), np.float32)}, CACHED, "m:reference", CACHED_AXES)
    with pytest.raises(StepError) as caught:
        check_feeds({"image": np.ones((1, 1, 32, 40), np.float32)}, IMAGE, "m", IMAGE_AXES)
    assert (
        caught.value.what == "axis 'width' has size 40; expected a multiple of 16 from 16 to 128"
    )
    assert caught.value.fix == "cut or pad the data to 48"
