import json

import numpy as np
import onnx
import pytest

import onnxbuild
from onnxbuild.host.host import HostFacts
from onnxbuild.resolver import resolve
from tests.onnxkit.models import linear
from tests.written_recipes import faults, loader

TEXT = """\
version: 1
name: demo
model: model.py:load
dummy_inputs:
  x: {dtype: float32, shape: [batch, 3, 8, 8]}
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
quantization: {fp32: none, int8: dynamic}
processing:
"""
BEFORE = """\
  preprocess:
    - image: {name: picture}
    - resize: {size: [8, 8]}
    - rescale: {}
    - to_nchw: {}
"""
BEHIND = """\
  postprocess:
    - argmax: {}
    - labels: {file: labels.txt}
"""
HOST = HostFacts("x86_64", frozenset())


@pytest.fixture
def load(tmp_path):
    (tmp_path / "labels.txt").write_text("a\nb\n")
    return loader(tmp_path, before=TEXT)


def test_each_variant_has_a_pipeline_next_to_it(load):
    (recipe,) = load(BEFORE + BEHIND).recipes
    graph = resolve([recipe], HOST)
    names = [each.name for each in graph.deliverables]
    assert names == ["fp32", "fp32-pipeline", "int8", "int8-pipeline"]
    merge = graph.steps["demo:int8-pipeline/merge"]
    assert merge.inputs["model"] == graph.steps["demo:int8/package"].inputs["model"]
    (entrypoint,) = merge.params.pipeline.entrypoints
    assert entrypoint.files == ("labels.txt",)
    judged = graph.steps["demo:int8-pipeline/validate"]
    assert judged.inputs["model"].step == "demo:int8-pipeline/merge"
    assert [each.name for each in merge.params.inputs] == ["picture"]
    assert {"picture_height", "picture_width"} < {each.name for each in merge.params.axes}


def test_the_plain_variants_steps_are_the_same_without_it(load):
    (with_it,) = load(BEFORE + BEHIND).recipes
    (without,) = load(BEFORE + BEHIND + "  variants: [fp32]\n").recipes
    whole, part = (resolve([each], HOST) for each in (with_it, without))
    for name, step in part.steps.items():
        if name == "demo:benchmark-pipelines":
            continue
        assert step.params_json == whole.steps[name].params_json
    assert set(whole.steps) - set(part.steps) == {
        f"demo:int8-pipeline/{each}" for each in ("merge", "reference", "validate", "package")
    }


def test_packages_are_made_of_pipelines_too_and_held_against_what_pipelines_are(load):
    text = BEFORE + BEHIND + "packages: {variants: [fp32, int8-pipeline], wheel: {}}\n"
    (recipe,) = load(text).recipes
    graph = resolve([recipe], HOST)
    names = [each.name for each in graph.deliverables]
    assert names == [
        "fp32", "fp32-wheel", "fp32-pipeline", "int8", "int8-pipeline", "int8-pipeline-wheel",
    ]  # fmt: skip
    run = graph.steps["demo:int8-pipeline-wheel/run"]
    judged = graph.steps["demo:int8-pipeline/validate"]
    assert run.inputs["reference"] == judged.inputs["reference"]
    assert run.params.tolerances == judged.params.tolerances
    assert graph.steps["demo:int8-pipeline-wheel/package"].inputs["bundle"].step == (
        "demo:int8-pipeline/package"
    )
    only = resolve([recipe], HOST, only=["int8-pipeline-wheel"])
    assert [each.name for each in only.deliverables] == ["int8-pipeline", "int8-pipeline-wheel"]


def test_a_bundle_that_is_none_is_named_when_the_recipe_is_read(load):
    ((what, _, fix),) = faults(load, BEFORE + "packages: {variants: [int8-pipelin], wheel: {}}\n")
    assert "did you mean 'int8-pipeline'?" in what
    assert "int8-pipeline" in fix


@pytest.mark.parametrize(
    ("asks", "fix"),
    [
        (
            "quantization: {small: {mode: auto, goal: {max_drop: 0.01}}}\n",
            "write `goal: {cosine_mean: 0.995}`, which goes by `fidelity`",
        ),
        ("sensitivity: {rank_by: metric}\n", "write `rank_by: cosine`, which goes by `fidelity`"),
    ],
)
def test_what_needs_scores_of_models_takes_none_of_pipelines(tmp_path, asks, fix):
    load = loader(tmp_path, before=TEXT.replace("quantization: {fp32: none, int8: dynamic}\n", ""))
    (tmp_path / "labels.txt").write_text("a\nb\n")
    (tmp_path / "own.py").write_text("def pictures(): ...\ndef score(): ...\n")
    scored = "evaluate: {data: own.py:pictures, metric: own.py:score, of: OF}\n"
    ((what, _, found),) = faults(load, BEFORE + BEHIND + scored.replace("OF", "pipeline") + asks)
    assert what.endswith(", and `evaluate` scores pipelines, not models")
    assert found.startswith(fix)
    assert load(BEFORE + BEHIND + scored.replace("OF", "model") + asks).recipes


@pytest.mark.parametrize(
    ("text", "what", "line", "fix"),
    [
        (BEFORE + BEHIND.replace("argmax", "armgax"), "did you mean 'argmax'?", 17, "`argmax`"),
        (BEFORE.replace("- image: {name: picture}", "- image: {feeds: y}"), "feeds 'y'", 12, ""),
        (BEHIND.replace("labels.txt", "label.txt"), "matches no file", 13, "relative to this"),
        (
            BEHIND.replace("- argmax: {}", "- {argmax: {}, softmax: {}}"),
            "expected one",
            12,
            "each",
        ),
        (BEHIND + "  outputs: [labels]\n", "outputs names 'labels'", 11, "did you mean 'label'?"),
        (
            "  postprocess:\n    - model: {callable: model.py:lod}\n",
            "defines no 'lod'",
            12,
            "load",
        ),
    ],
)
def test_a_bad_pipeline_is_refused_where_it_stands(load, text, what, line, fix):
    found = faults(load, text)
    assert any(
        what in each and where.startswith(f"demo.yaml:{line}:") and fix in mend
        for each, where, mend in found
    ), found


CODE = '''\
import numpy as np


def expected():
    """y = Relu(x @ w), its greatest value's name."""
    import onnx

    w = onnx.numpy_helper.to_array(onnx.load("models/linear.onnx").graph.initializer[0])
    for seed in range(8):
        x = np.random.default_rng(seed).standard_normal((2, 4)).astype(np.float32)
        y = np.maximum(x @ w, 0)
        yield {"x": x}, {"label": np.array(["a", "b", "c"])[y.argmax(-1)]}
'''
RECIPE = """\
version: 1
name: demo
model: {onnx: models/linear.onnx}
dynamic_axes:
  batch: {min: 1, max: 8, example: 4}
processing:
  postprocess:
    - argmax: {}
    - labels: {file: labels.txt}
  expected: {entrypoint: own.py:expected, files: [models/linear.onnx]}
benchmark: {max_time_s: 0.1, min_samples: 3}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("warm_steps")
def test_a_bundle_takes_raw_inputs_and_a_changed_label_reruns_its_steps_alone(tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "own.py").write_text(CODE)
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    (tmp_path / "demo.yaml").write_text(RECIPE)
    onnx.save(linear(), tmp_path / "models/linear.onnx")
    request = onnxbuild.Request((tmp_path / "demo.yaml",))
    assert onnxbuild.build(request).exit_code == 0
    bundle = tmp_path / "artifacts/out/demo/fp32-pipeline"
    manifest = json.loads((bundle / "manifest.json").read_text())
    assert manifest["variant"] == "fp32-pipeline"
    label = {"name": "label", "dtype": "string", "shape": ["batch"], "labels": ["a", "b", "c"]}
    assert manifest["outputs"] == [label]
    assert manifest["validation"]["cpu"]["metrics"]["equal_min"] == 1.0
    gates = json.loads((bundle / "gates.json").read_text())
    assert gates == {"processing": {"held_against": "own.py:expected", "points": 8}}
    assert (tmp_path / "artifacts/out/demo/fp32/model.onnx").exists()
    assert onnxbuild.build(request).report.built == []
    (tmp_path / "labels.txt").write_text("b\nc\na\n")  # shifted by one
    after = onnxbuild.build(request)
    assert after.exit_code == 3
    steps = {f"demo:fp32-pipeline/{e}" for e in ("merge", "validate")}
    assert set(after.report.built) == {
        *steps,
        "demo:fp32/package",
    }  # its manifest names the classes, too
    assert {each.step for each in after.report.failures} == {"demo:fp32-pipeline/validate"}
    (tmp_path / "labels.txt").write_text("a\nb\nc\n")
    assert onnxbuild.build(request).report.built == []
    assert np.isfinite(manifest["size_bytes"])


TEXTS = """\
version: 1
name: demo
model: model.py:load
dummy_inputs:
  input_ids: {dtype: int64, shape: [batch, sequence], low: 0, high: 9}
  attention_mask: {dtype: int64, shape: [batch, sequence], fill: 1}
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
  sequence: {min: 1, max: 64, example: 8}
quantization: {fp32: none, int8: dynamic}
processing:
"""
TOKENIZE = """\
  preprocess:
    - text: {}
    - tokenize: {file: tokenizer.json, corpus: labels.txt, max_length: 64}
"""
SCORED = """\
evaluate: {of: pipeline, data: model.py:load, metric: model.py:load, min: 0.5}
"""


@pytest.fixture
def load_text(tmp_path):
    (tmp_path / "labels.txt").write_text("a\nb\n")
    (tmp_path / "tokenizer.json").write_text("{}")
    return loader(tmp_path, before=TEXTS)


def test_one_tokenizer_is_made_for_all_variants_and_judges_each_pipeline(load_text):
    (recipe,) = load_text(TOKENIZE).recipes
    graph = resolve([recipe], HOST)
    for name in ("fp32", "int8"):
        merge = graph.steps[f"demo:{name}-pipeline/merge"]
        assert merge.inputs["tokenizer/preprocess/1"].step == "demo:tokenizer"
        assert merge.inputs["tokenizer/preprocess/1"].output == "tokenizer"
        package = graph.steps[f"demo:{name}-pipeline/package"]
        assert package.inputs["gate/tokenizer"].step == "demo:tokenizer"
        assert [(each.name, each.dtype) for each in merge.params.inputs] == [("text", "string")]
        assert [axis.name for axis in merge.params.axes] == ["batch"]
        assert merge.params.pipeline.entrypoints == ()  # another corpus merges nothing anew


LENGTHS = {
    "longest": ("{min: 4, max: 64, example: 8}", "", "longest of a batch, which may have 2 ids", "padding: max_length"),
    "multiples": (
        "{min: 0, max: 64, example: 8, multiple_of: 8}", "", "takes a multiple of 8 from 0 to 64",
        "max_length: 64, padding: max_length",
    ),
    "between": (
        "{min: 8, max: 128, example: 8, multiple_of: 8}", "max_length: 60, padding: max_length", "tokenize gives 60 ids",
        "max_length: 64",
    ),
    "padded": ("{min: 8, max: 64, example: 8, multiple_of: 8}", "max_length: 64, padding: max_length", "", ""),
}  # fmt: skip


@pytest.mark.parametrize(("axis", "asked", "what", "fix"), LENGTHS.values(), ids=LENGTHS)
def test_rows_of_ids_have_lengths_that_the_model_takes(tmp_path, axis, asked, what, fix):
    (tmp_path / "labels.txt").write_text("a\nb\n")
    (tmp_path / "tokenizer.json").write_text("{}")
    load = loader(tmp_path, before=TEXTS.replace("{min: 1, max: 64, example: 8}", axis))
    written = TOKENIZE.replace("max_length: 64", asked or "max_length: 64")
    if not what:
        assert load(written).recipes
        return
    ((found, where, proposed),) = faults(load, written)
    assert what in found
    assert where.endswith(":15:7")
    assert fix in proposed


def test_raw_data_score_pipelines_in_place_of_variants(load_text):
    (recipe,) = load_text(TOKENIZE + SCORED).recipes
    graph = resolve([recipe], HOST)
    scored = {name for name, step in graph.steps.items() if step.kind == "evaluate"}
    assert scored == {"demo:fp32-pipeline/evaluate", "demo:int8-pipeline/evaluate"}
    inputs = graph.steps["demo:int8-pipeline/package"].inputs
    assert inputs["evaluation/cpu"].step == "demo:int8-pipeline/evaluate"
    (with_own,) = load_text(TOKENIZE + "  own: model.py:load\n" + SCORED).recipes
    graph = resolve([with_own], HOST)
    assert graph.steps["demo:int8-pipeline/evaluate"].inputs["baseline"].step == "demo:evaluate"
    assert graph.steps["demo:evaluate"].inputs == {}


def test_all_pipelines_are_measured_in_one_step_with_texts_of_the_corpus(load_text):
    (recipe,) = load_text(TOKENIZE + "  points: [{batch: [1, 8]}]\n").recipes
    graph = resolve([recipe], HOST)
    measured = graph.steps["demo:benchmark-pipelines"]
    assert set(measured.inputs) == {"model/fp32-pipeline", "model/int8-pipeline"}
    assert measured.params.texts["text"].files == ("labels.txt",)
    assert measured.params.options.points == ({"batch": (1, 8)},)
    assert not measured.params.options.baseline
    (laid,) = (each for each in graph.deliverables if each.name == "int8-pipeline")
    assert ("demo:benchmark-pipelines", "benchmark.json") in {
        (ref.step, file) for ref, file in laid.parts
    }


@pytest.mark.parametrize(
    ("text", "what", "line", "fix"),
    [
        (TOKENIZE.replace(", max_length: 64", ""), "gives up to 512 ids", 15, "max_length: 64"),
        (TOKENIZE + "  points: [{batch: 9}]\n", "has batch=9; expected 1 to 8", 16, "batch: 8"),
        (
            TOKENIZE.replace("tokenizer.json", "package:numpy/versio.py"),
            "did you mean 'version.py'?",
            15,
            "that package",
        ),
        (TOKENIZE + "opset: 17\n", "tokenize needs opset 18", 15, "opset: 18"),
    ],
)
def test_bad_text_is_refused_where_it_stands(load_text, text, what, line, fix):
    found = faults(load_text, text)
    assert any(
        what in each and f"demo.yaml:{line}:" in where and fix in mend
        for each, where, mend in found
    ), found
