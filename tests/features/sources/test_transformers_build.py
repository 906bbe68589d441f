"""`model: {transformers: FOLDER}`: each task exported, checked and validated; what a wrong weight does; what is rebuilt."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

import onnxbuild
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.target import CPU_TARGET, TargetGates
from onnxbuild.expansion.limits import tolerances_of
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.recipe.load import load_recipes
from onnxbuild.steps import check, export, reference, validate
from tests import tiny_transformers as tiny
from tests.fakes.step_context import run_step

pytest.importorskip("transformers")

TASKS = {
    "feature-extraction": (partial(tiny.bert, "BertModel"), {}, ["last_hidden_state"]),
    "text-classification": (partial(tiny.bert, "BertForSequenceClassification"), {}, ["logits"]),
    "question-answering": (
        partial(tiny.bert, "BertForQuestionAnswering"), {}, ["start_logits", "end_logits"],
    ),
    "image-classification": (tiny.vit, {}, ["logits"]),
    "object-detection, proportions": (
        tiny.detr, {"size": {"shortest_edge": 64, "longest_edge": 96}}, ["logits", "pred_boxes"],
    ),
    "image-segmentation": (tiny.segformer, {"size": {"height": 64, "width": 32}}, ["logits"]),
    "image-segmentation, masks by queries": (
        tiny.mask2former, {"size": {"height": 64, "width": 64}},
        ["class_queries_logits", "masks_queries_logits"],
    ),
    "audio-classification": (
        partial(tiny.wave, "Wav2Vec2ForSequenceClassification"), {"sampling_rate": 1000}, ["logits"],
    ),
    "audio-classification, spectrogram": (tiny.spectrogram, {}, ["logits"]),
}  # fmt: skip


def recipe_of(folder: Path, text: str = "") -> Recipe:
    """The recipe of a folder `weights`; the names of its files are absolute."""
    (folder / "pyproject.toml").write_text("")
    (folder / "demo.yaml").write_text(
        f"version: 1\nname: demo\nmodel: {{transformers: weights{text}}}\n"
    )
    (recipe,) = load_recipes(folder / "demo.yaml", project=folder).recipes
    files = tuple(str(folder / each) for each in recipe.model.files)
    return replace(recipe, model=replace(recipe.model, files=files))


def exported(recipe: Recipe, folder: Path, exporter: str = "auto") -> Path:
    params = export.ExportParams(
        recipe.model, recipe.inputs, recipe.outputs, recipe.axes, recipe.opset, None,
        export.ExportOptions(exporter=exporter),
    )  # fmt: skip
    _, context = run_step(export.KIND, params, folder / "export")
    made = context.output("model")
    params = check.CheckParams(recipe.inputs, recipe.outputs, recipe.axes, recipe.opset)
    checked, _ = run_step(check.KIND, params, folder / "check", {"model": made})
    assert checked.findings == ()
    return made


def computed(recipe: Recipe, folder: Path) -> Path:
    """What PyTorch computes."""
    params = reference.ReferenceParams(
        recipe.model, recipe.inputs, recipe.outputs, recipe.axes, None,
        reference.ReferenceOptions(),
    )  # fmt: skip
    _, context = run_step(reference.KIND, params, folder / "reference")
    return context.output("reference")


def judged(recipe: Recipe, folder: Path, model: Path, expected: Path) -> list[str]:
    """What the gate finds in a model, with the tolerances of the recipe."""
    (variant,) = recipe.variants
    tolerances = tolerances_of(recipe, variant)
    params = validate.ValidateParams("fp32", "fp32", tolerances, CPU_TARGET, TargetGates())
    inputs = {"model": model, "reference": expected}
    outcome, _ = run_step(validate.KIND, params, folder / "validate", inputs)
    assert outcome.metrics["points"] >= 2
    return [each.what for each in outcome.findings]


@pytest.mark.slow
@pytest.mark.parametrize("case", TASKS)
def test_every_task_is_exported_checked_and_validated(tmp_path, case):
    make, processor, outputs = TASKS[case]
    files = {"preprocessor_config.json": processor} if processor else {}
    tiny.saved(tmp_path / "weights", make, files=files)
    recipe = recipe_of(tmp_path)
    assert recipe.model.args["task"] == case.partition(",")[0]
    assert list(recipe.outputs) == outputs
    made = exported(recipe, tmp_path)
    found = [each.name for each in load_model(made).graph.output]
    assert found == outputs
    assert judged(recipe, tmp_path, made, computed(recipe, tmp_path)) == []


def test_one_wrong_weight_is_caught(tmp_path):
    tiny.saved(tmp_path / "weights", partial(tiny.bert, "BertModel"))
    recipe = recipe_of(tmp_path)
    made, expected = exported(recipe, tmp_path, "torchscript"), computed(recipe, tmp_path)
    assert judged(recipe, tmp_path, made, expected) == []
    model = load_model(made)
    planted = next(
        each for each in model.graph.initializer if "layer.0.output.dense.bias" in each.name
    )
    weight = np.array(numpy_helper.to_array(planted))
    weight[3] += 0.05
    planted.CopyFrom(numpy_helper.from_array(weight, planted.name))
    shutil.rmtree(made)
    made.mkdir()
    save_model(model, made)
    (found,) = judged(recipe, tmp_path, made, expected)
    assert "differ by more than 0.0001 + 0.0001 |b|" in found


def build(folder, text="", **settings):
    (folder / "pyproject.toml").write_text("")
    (folder / "demo.yaml").write_text(
        f"version: 1\nname: demo\nmodel: {{transformers: {text}}}\n"
        "export: {exporter: torchscript}\nbenchmark: {max_time_s: 0.1, min_samples: 3}\n"
    )
    return onnxbuild.build(onnxbuild.Request((folder / "demo.yaml",), **settings))


def cache(folder: Path, weights: Path) -> Path:
    """A hub's cache, outside of the project, whose snapshot is links."""
    (folder / "blobs").mkdir(parents=True)
    (folder / "snapshots/abc").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "refs/main").write_text("abc")
    for n, file in enumerate(sorted(weights.iterdir())):
        shutil.copy(file, folder / f"blobs/{n}")
        (folder / "snapshots/abc" / file.name).symlink_to(f"../../blobs/{n}")
    return folder


@pytest.mark.slow
@pytest.mark.usefixtures("warm_steps")
def test_the_model_is_built_again_when_its_folder_changes_and_the_same_elsewhere(tmp_path):
    weights = tiny.saved(tmp_path / "saved", partial(tiny.bert, "BertForSequenceClassification"))
    models = []
    for name in ("one", "another"):
        (tmp_path / name).mkdir()
        outside = cache(tmp_path / f"cache of {name}", weights)
        result = build(tmp_path / name, f"'{outside}'")
        assert result.exit_code == 0, result.report.failures
        bundle = tmp_path / name / "artifacts/out/demo/fp32"
        models.append((bundle / "model.onnx").read_bytes())
        manifest = json.loads((bundle / "manifest.json").read_text())
        assert manifest["validation"]["cpu"]["passed"]
        assert [each["name"] for each in manifest["inputs"]] == [
            "input_ids", "attention_mask", "token_type_ids",
        ]  # fmt: skip
        assert build(tmp_path / name, f"'{outside}'").report.built == []
    assert models[0] == models[1]
    config = json.loads((outside / "snapshots/abc/config.json").read_text())
    (outside / "blobs/0").write_text(json.dumps(config | {"hidden_act": "relu"}))
    result = build(tmp_path / name, f"'{outside}'")
    assert result.exit_code == 0, result.report.failures
    assert "demo:export" in result.report.built
    assert (bundle / "model.onnx").read_bytes() != models[0]
