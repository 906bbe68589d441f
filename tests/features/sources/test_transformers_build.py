"""`model: {transformers: FOLDER}`, built: each task, what a wrong weight does, what is rebuilt."""

from __future__ import annotations

import json
from functools import partial

import pytest

import onnxbuild
from tests import tiny_transformers as tiny

pytest.importorskip("transformers")

TEXT = ("attention_mask", "input_ids", "token_type_ids")
TASKS = {
    "feature-extraction": (partial(tiny.bert, "BertModel"), {}, ["last_hidden_state"]),
    "fill-mask": (partial(tiny.roberta, "RobertaForMaskedLM"), {}, ["logits"]),
    "text-classification": (partial(tiny.bert, "BertForSequenceClassification"), {}, ["logits"]),
    "token-classification": (partial(tiny.bert, "BertForTokenClassification"), {}, ["logits"]),
    "question-answering": (
        partial(tiny.bert, "BertForQuestionAnswering"), {}, ["start_logits", "end_logits"],
    ),
    "image-classification": (tiny.vit, {}, ["logits"]),
    "image-classification, convolutions": (
        tiny.resnet, {"size": {"shortest_edge": 40}, "crop_size": 32, "do_center_crop": True}, ["logits"],
    ),
    "object-detection": (tiny.yolos, {}, ["logits", "pred_boxes"]),
    "object-detection, proportions": (
        tiny.detr, {"size": {"shortest_edge": 64, "longest_edge": 96}}, ["logits", "pred_boxes"],
    ),
    "image-segmentation": (tiny.segformer, {"size": {"height": 64, "width": 32}}, ["logits"]),
    "audio-classification": (
        partial(tiny.wave, "Wav2Vec2ForSequenceClassification"), {"sampling_rate": 1000}, ["logits"],
    ),
    "audio-classification, spectrogram": (tiny.spectrogram, {}, ["logits"]),
    "ctc": (partial(tiny.wave, "Wav2Vec2ForCTC"), {"sampling_rate": 1000}, ["logits"]),
}  # fmt: skip


def build(folder, text="", *, more="benchmark: {max_time_s: 0.1, min_samples: 3}\n", **settings):
    (folder / "pyproject.toml").write_text("")
    (folder / "demo.yaml").write_text(
        f"version: 1\nname: demo\nmodel: {{transformers: weights{text}}}\n{more}"
    )
    return onnxbuild.build(onnxbuild.Request((folder / "demo.yaml",), **settings))


@pytest.mark.slow
@pytest.mark.parametrize("case", TASKS)
def test_every_task_is_exported_checked_and_validated(tmp_path, case):
    make, processor, outputs = TASKS[case]
    files = {"preprocessor_config.json": processor} if processor else {}
    tiny.saved(tmp_path / "weights", make, files=files)
    result = build(tmp_path)
    assert result.exit_code == 0, result.report.failures
    manifest = json.loads((tmp_path / "artifacts/out/demo/fp32/manifest.json").read_text())
    assert [each["name"] for each in manifest["outputs"]] == outputs
    assert manifest["outputs"][0]["shape"][0] == "batch"
    assert manifest["validation"]["cpu"]["passed"]
    again = build(tmp_path)
    assert again.report.built == []
