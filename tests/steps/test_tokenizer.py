import json

import numpy as np
import onnxruntime
import pytest

from onnxbuild.core.recipe import FILE_DATA, Entrypoint
from onnxbuild.steps import tokenizer
from tests.fakes.step_context import run_step

pytest.importorskip("tokenizers")
from tests.onnxkit.wordpiece import tokenizers_made as made


def params(folder, **changes):
    made.tokenizer().save(str(folder / "tokenizer.json"))
    corpus = folder / "corpus.txt"
    if not corpus.exists():
        corpus.write_text("under the 中文\n\nunbelievable [SEP] é\n", encoding="utf-8")
    file, texts = (
        Entrypoint(FILE_DATA, files=(str(folder / name),))
        for name in ("tokenizer.json", "corpus.txt")
    )
    found = {"max_length": 16, "fixed": False, "lowercase": True, "opset": 18, **changes}
    return tokenizer.TokenizerParams(file, texts, **found)


def test_the_graph_gives_the_ids_of_tokenizers_on_the_corpus(tmp_path):
    outcome, _ = run_step(tokenizer.KIND, params(tmp_path), tmp_path)
    assert outcome.findings == ()
    assert outcome.metrics["texts"] == 2
    assert outcome.metrics["different"] == outcome.metrics["hard_different"] == 0
    assert outcome.metrics["hard_texts"] > 80
    report = json.loads((tmp_path / "out/report/report.json").read_text())
    assert report["held_against"] == "tokenizers"
    assert report["differences"] == []
    session = onnxruntime.InferenceSession(tmp_path / "out/tokenizer/model.onnx")
    ids, _, _ = session.run(None, {"text": np.array(["unbelievable"], object)})
    assert ids[0].tolist() == made.tokenizer().encode("unbelievable").ids


@pytest.mark.slow
def test_texts_that_differ_are_a_finding_with_the_first_of_them(tmp_path, monkeypatch):
    _, cased = made.known(cased=True)
    monkeypatch.setattr(tokenizer, "read_characters", lambda _: cased)
    outcome, _ = run_step(tokenizer.KIND, params(tmp_path), tmp_path)
    (finding,) = outcome.findings
    assert finding.what.startswith(
        "the ids of 1 texts (of 2 in the corpus) are not those of `tokenizers`"
    )
    assert "'unbelievable [SEP] \\xe9' at" in finding.what
    report = json.loads((tmp_path / "out/report/report.json").read_text())
    assert report["different"] == 1
    assert report["differences"][0]["text"] == "unbelievable [SEP] é"
