"""A text-to-image pipeline of diffusers' from `init` to pictures: PyTorch's, at two sizes of latents; and a wrong UNet."""

import json
from dataclasses import replace

import numpy as np
import pytest
from onnx import numpy_helper

from onnxbuild.catalog import CATALOG
from onnxbuild.cli.main import run_command
from onnxbuild.core.params import to_json
from onnxbuild.host.host import HostFacts
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.recipe.load import load_recipes
from onnxbuild.resolver import resolve
from onnxbuild.steps.export import ExportOptions
from tests.fakes.step_context import run_step
from tests.tiny_diffusers import save_pipeline

pytest.importorskip("diffusers")

pytestmark = pytest.mark.slow

PARTS = ("text_encoder", "unet", "vae_decoder")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(what runs a step of the recipe that `init` writes, the components' graphs, PyTorch's reference)."""
    here = tmp_path_factory.mktemp("project")
    (here / ".git").mkdir()
    save_pipeline(here / "sd")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(here)
        assert run_command(["init", "sd", "-o", "sd.yaml"]) == 0
        yield built(here)


def built(here):
    recipes = load_recipes(here / "sd.yaml", project=here).recipes
    graph = resolve(recipes, HostFacts("x86_64", frozenset()))

    def ran(step, inputs=(), **changes):
        each = graph.steps[step]
        params = replace(each.params, **changes)
        outcome, context = run_step(CATALOG[each.kind], params, here / step, dict(inputs))
        return outcome, context

    models = {
        f"model/{part}": ran(f"sd@{part}:export", options=ExportOptions("torchscript"))[1].output(
            "model"
        )
        for part in PARTS
    }
    reference = ran("sd@pipeline:reference")[1].output("reference")
    return ran, models, reference


def test_pictures_are_pytorchs_within_60_db_at_two_sizes_of_latents(made):
    ran, models, reference = made
    outcome, context = ran("sd@pipeline:fp32/validate", {**models, "reference": reference})
    assert to_json(outcome.findings) == []
    report = json.loads((context.output("report") / "report.json").read_text())
    assert report["metrics"]["sqnr_db_min"] > 60
    pictures = [point.outputs["image"] for point in read_reference(reference)]
    assert [each.shape for each in pictures] == [(1, 3, 32, 8), (1, 3, 8, 8)]
    assert min(float(np.std(each)) for each in pictures) > 0.01, "plain pictures would hide faults"


def test_a_wrong_weight_of_the_unet_is_found_in_the_picture_and_named(made, tmp_path):
    ran, models, reference = made
    model = load_model(models["model/unet"])
    planted = max(model.graph.initializer, key=lambda each: len(each.raw_data))
    planted.CopyFrom(
        numpy_helper.from_array(numpy_helper.to_array(planted) * np.float32(1.2), planted.name)
    )
    save_model(model, tmp_path / "wrong")
    wrong = {**models, "model/unet": tmp_path / "wrong", "reference": reference}
    outcome, _ = ran("sd@pipeline:fp32/validate", wrong)
    assert any("'image'" in each.where for each in outcome.findings)
    assert outcome.findings[-1].what.startswith("component 'unet' differs first: ")
    few, _ = ran("sd@pipeline:fp32/validate", wrong, judged_by="metric", min=200.0)
    assert "sd_pipeline.py:psnr is " in few.findings[0].what
