"""`model: {transformers: FOLDER}`: each task exported, checked and validated; what a wrong weight does; what is rebuilt."""

import json
import shutil
from functools import partial
from pathlib import Path

import pytest

import onnxbuild
from onnxbuild.onnxkit.model.model_files import load_model
from tests import tiny_transformers as tiny
from tests.features.sources.built import (
    computed,
    exported,
    judged,
    judged_with_a_wrong_weight,
    recipe_of,
)

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


@pytest.mark.slow
@pytest.mark.parametrize("case", TASKS)
def test_every_task_is_exported_checked_and_validated(tmp_path, case):
    make, processor, outputs = TASKS[case]
    files = {"preprocessor_config.json": processor} if processor else {}
    tiny.saved(tmp_path / "weights", make, files=files)
    recipe = recipe_of(tmp_path, "transformers: weights")
    assert recipe.model.args["task"] == case.partition(",")[0]
    assert list(recipe.outputs) == outputs
    made = exported(recipe, tmp_path)
    found = [each.name for each in load_model(made).graph.output]
    assert found == outputs
    assert judged(recipe, tmp_path, made, computed(recipe, tmp_path)) == []


def test_one_wrong_weight_is_caught(tmp_path):
    tiny.saved(tmp_path / "weights", partial(tiny.bert, "BertModel"))
    recipe = recipe_of(tmp_path, "transformers: weights")
    sound, (found,) = judged_with_a_wrong_weight(
        recipe,
        tmp_path,
        exported(recipe, tmp_path, "torchscript"),
        wrong=lambda each: "layer.0.output.dense.bias" in each.name,
        by=0.05,
    )
    assert sound == []
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
