"""One callable over an encoder and a decoder: PyTorch's outputs, the gate on their graphs, wrong graphs, wrong callables."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.target import CPU_TARGET
from onnxbuild.features.packages import pipeline as feature
from onnxbuild.onnxkit.accuracy.tolerances import DEFAULT_TOLERANCES, VariantTolerances
from onnxbuild.onnxkit.benchmark.options import BenchmarkOptions
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.pipelines.built_in import ctc_plan
from onnxbuild.onnxkit.pipelines.calls import ReferencePart, RunPart, RunPipeline, recorded
from onnxbuild.onnxkit.pipelines.layout import calls_in_order
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.steps import (
    evaluate,
    pipeline,
    pipeline_latency,
    pipeline_reference,
    quantize_dynamic,
    sensitivity,
)
from tests.fakes.step_context import run_step

MODELS = Path(__file__).parents[2] / "recipes" / "models"
IDS = DummyInput("input_ids", "int64", ("batch", "source"))
MASK = DummyInput("attention_mask", "int64", ("batch", "source"))
INPUTS = {
    "encoder": (IDS, MASK),
    "decoder": (
        DummyInput("decoder_ids", "int64", ("batch", "target")),
        DummyInput("cross", "float32", ("batch", "source", 64)),
        MASK,
    ),
}
AXES = (Axis("batch", 1, 8, 2), Axis("source", 1, 64, 12), Axis("target", 1, 32, 5))
OUTPUTS = {"encoder": ("cross",), "decoder": ("logits",)}
FP32 = VariantTolerances(
    **{name: getattr(DEFAULT_TOLERANCES["fp32"], name) for name in ("atol", "rtol", "equal_min")}
)
TRANSLATE = Entrypoint(f"{MODELS}/seq2seq_translate.py:translate")
SAMPLES = Entrypoint(f"{MODELS}/seq2seq_translate.py:samples")


MODULES = tuple(
    ReferencePart(
        name, Entrypoint(f"{MODELS}/seq2seq.py:{name}"), INPUTS[name], AXES, OUTPUTS[name]
    )
    for name in INPUTS
)


def reference_of(folder, run=TRANSLATE, samples=SAMPLES, count=4):
    """(outcome, folder of the reference)."""
    params = pipeline_reference.PipelineReferenceParams(MODULES, run, samples, count)
    outcome, context = run_step(pipeline_reference.KIND, params, folder / "reference")
    return outcome, context.output("reference")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """(PyTorch's reference, component -> folder of its model)."""
    import torch

    folder = tmp_path_factory.mktemp("seq2seq")
    outcome, reference = reference_of(folder)
    assert outcome.metrics == {"samples": 4, "calls": 4 * 13}
    models = {}
    for name, module in seq2seq().items():
        feeds = next(
            point.feeds for part, point in calls_in_order(reference, list(INPUTS)) if part == name
        )
        models[name] = folder / name
        models[name].mkdir()
        inputs = [each.name for each in INPUTS[name]]
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of the older exporter, which takes a tenth of the time
            torch.onnx.export(
                module,
                tuple(torch.from_numpy(feeds[each].copy()) for each in inputs),
                str(models[name] / "model.onnx"),
                input_names=inputs,
                output_names=list(OUTPUTS[name]),
                dynamic_axes={each.name: {n: s for n, s in enumerate(each.shape) if isinstance(s, str)} for each in INPUTS[name]},
                opset_version=17,
                dynamo=False,
            )  # fmt: skip
    return reference, models


def seq2seq():
    import importlib.util

    spec = importlib.util.spec_from_file_location("seq2seq", MODELS / "seq2seq.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {"encoder": module.encoder(), "decoder": module.decoder()}


PARAMS = pipeline.PipelineParams(
    variant="fp32",
    precision="fp32",
    parts=tuple(
        pipeline.JudgedPart(name, inputs, FP32, SessionSettings())
        for name, inputs in INPUTS.items()
    ),
    components=("seq2seq@encoder:fp32", "seq2seq@decoder:fp32"),
    judged_by="outputs",
    run=TRANSLATE,
    metric=None,
    min=None,
    distinct=8,
    tolerances=replace(FP32, atol=1e-4),
    target=CPU_TARGET,
)


def judged(folder, made, params=PARAMS, **models):
    """(outcome, report) of the gate; `models` in place of the right ones."""
    reference, right = made
    inputs = {f"model/{name}": path for name, path in {**right, **models}.items()}
    outcome, context = run_step(pipeline.KIND, params, folder, {**inputs, "reference": reference})
    report = json.loads((context.output("report") / "report.json").read_text())
    assert report["passed"] == (not outcome.findings)
    return outcome, report


def test_the_same_callable_gives_the_same_tokens_on_onnx_runtime(tmp_path, made):
    outcome, report = judged(tmp_path, made)
    assert not outcome.findings
    assert outcome.metrics["equal_min"] == 1
    assert 0 < outcome.metrics["max_abs"] < 1e-4
    assert report["samples"] == 4


def mutated(folder, source, change):
    model = onnx.load(source / "model.onnx")
    change(model.graph)
    folder.mkdir()
    onnx.save(model, folder / "model.onnx")
    return folder


def key_for_value(graph):
    """The projections of keys are those of values, in the attention to the encoder's outputs."""
    weights = {each.name: each for each in graph.initializer}
    takers = [node for node in graph.node if node.op_type == "MatMul" and node.input[0] == "cross"]
    assert len(takers) == 2
    takers[0].input[1] = takers[1].input[1]
    assert takers[1].input[1] in weights


def mask_dropped(graph):
    """All positions of the source are allowed, those of the padding, too."""
    (compare,) = [node for node in graph.node if node.op_type == "Greater"]
    compare.input[1] = "below"
    graph.initializer.append(onnx.numpy_helper.from_array(np.array(-1, np.int64), "below"))


@pytest.mark.parametrize("change", [key_for_value, mask_dropped])
@pytest.mark.parametrize("judged_by", ["outputs", "calls"])
def test_a_wrong_graph_is_a_finding_that_names_sample_output_and_component(
    tmp_path, made, change, judged_by
):
    wrong = mutated(tmp_path / "wrong", made[1]["decoder"], change)
    params = replace(PARAMS, judged_by=judged_by)
    outcome, _ = judged(tmp_path, made, params, decoder=wrong)
    (*found, first) = outcome.findings
    assert any("output 'logits', point '" in each.where for each in found)
    assert first.what.startswith(
        "component 'decoder' differs first: on the inputs of PyTorch's call "
    )
    assert first.fix == "onnxbuild diagnose seq2seq@decoder:fp32"


def test_an_encoder_that_is_wrong_is_named_though_the_tokens_are_the_decoders(tmp_path, made):
    wrong = mutated(tmp_path / "wrong", made[1]["encoder"], mask_dropped)
    outcome, _ = judged(tmp_path, made, encoder=wrong)
    assert outcome.findings[-1].what.startswith("component 'encoder' differs first: ")


def test_a_score_under_its_least_value_is_a_finding(tmp_path, made):
    metric = tmp_path / "metric.py"
    metric.write_text(
        "def same(outputs, labels):\n    return float(len(outputs) == len(labels) == 4) / 2\n"
    )
    params = replace(PARAMS, judged_by="metric", metric=Entrypoint(f"{metric}:same"), min=0.5)
    assert not judged(tmp_path, made, params)[0].findings
    outcome, _ = judged(tmp_path, made, replace(params, min=0.75))
    assert outcome.findings[0].what == f"{metric}:same is 0.5; expected at least 0.75"


def test_a_variant_is_scored_in_the_pipeline_by_how_far_it_is_below_pytorchs_own_outputs(
    tmp_path, made
):
    metric = tmp_path / "metric.py"
    metric.write_text(
        "import numpy as np\n\n\ndef same(outputs, labels):\n"
        "    return float(np.mean([(a['tokens'] == b['tokens']).mean() for a, b in zip(outputs, labels)]))\n"
    )
    parts = tuple(RunPart(name, inputs, SessionSettings()) for name, inputs in INPUTS.items())
    params = evaluate.EvaluateParams(
        data=SAMPLES,
        metric=Entrypoint(f"{metric}:same"),
        model=None,
        inputs=INPUTS["decoder"],
        axes=AXES,
        outputs=OUTPUTS["decoder"],
        variant="int8",
        target=CPU_TARGET,
        options=evaluate.EvaluateOptions(of="whole", max_drop=0.1),
        whole=RunPipeline(parts, TRANSLATE),
    )
    reference, right = made
    inputs = {f"model/{name}": path for name, path in right.items()} | {"reference": reference}
    outcome, _ = run_step(evaluate.KIND, params, tmp_path / "right", inputs)
    assert outcome.findings == ()
    found = outcome.metrics
    assert (found["score"], found["baseline_score"], found["drop"], found["samples"]) == (
        1,
        1,
        0,
        4,
    )
    wrong = mutated(tmp_path / "wrong", right["decoder"], key_for_value)
    inputs["model/decoder"] = wrong
    (finding,) = run_step(evaluate.KIND, params, tmp_path / "other", inputs)[0].findings
    assert "below the reference's 1; expected at most 0.1 below" in finding.what


NEARNESS = """
import numpy as np

def nearness(outputs, expected):
    pairs = zip(outputs, expected, strict=True)
    return -float(np.mean([np.abs(a["logits"] - b["logits"]).mean() for a, b in pairs]))
"""


def test_nodes_are_ranked_by_what_they_cost_the_metric_of_the_whole(tmp_path, made):
    (tmp_path / "metric.py").write_text(NEARNESS)
    metric = Entrypoint(f"{tmp_path}/metric.py:nearness")
    reference, right = made
    parts = tuple(RunPart(name, own, SessionSettings()) for name, own in INPUTS.items())
    params = sensitivity.SensitivityParams(
        data=None,
        project=None,
        inputs=INPUTS["encoder"],
        axes=AXES,
        samples=4,
        metric=metric,
        whole=RunPipeline(parts, TRANSLATE),
        component="encoder",
    )
    inputs = {"model": right["encoder"], "model/decoder": right["decoder"], "reference": reference}
    outcome, context = run_step(sensitivity.KIND, params, tmp_path / "ranked", inputs)
    report = json.loads((context.output("sensitivity") / "report.json").read_text())
    assert report["ranked_by"].endswith("metric.py:nearness")
    assert (report["samples"], report["runs"] % 4) == (4, 0)
    assert outcome.metrics["most_sensitive"] == report["nodes"][0]["name"]
    drops = [each["drop"] for each in report["nodes"]]
    assert drops == sorted(drops, reverse=True)
    assert drops[0] > 0
    # all nodes together score as the quantizer's model does
    options = quantize_dynamic.DynamicOptions(reduce_range=False)
    _, quantized = run_step(
        quantize_dynamic.KIND,
        quantize_dynamic.DynamicParams(options),
        tmp_path / "quantized",
        {"model": right["encoder"]},
    )
    scored = evaluate.EvaluateParams(
        data=SAMPLES,
        metric=metric,
        model=None,
        inputs=INPUTS["encoder"],
        axes=AXES,
        outputs=OUTPUTS["encoder"],
        variant="int8",
        target=CPU_TARGET,
        options=evaluate.EvaluateOptions(of="whole"),
        whole=RunPipeline(parts, TRANSLATE),
    )
    models = {"model/encoder": quantized.output("model"), "model/decoder": right["decoder"]}
    outcome, _ = run_step(
        evaluate.KIND, scored, tmp_path / "scored", {**models, "reference": reference}
    )
    assert report["all"]["score"] == pytest.approx(outcome.metrics["score"], rel=0.05)


def test_too_few_different_tokens_are_a_finding(tmp_path, made):
    outcome, _ = judged(tmp_path, made, replace(PARAMS, distinct=4 * 2 * 12 + 1))
    assert (
        "different values of output 'tokens', fewer than 97: equal ones say nothing"
        in outcome.findings[0].what
    )


BOTH = """\
    ids = np.ones((1, 3), np.int64)
    logits = parts.decoder(ids[:, :1], parts.encoder(ids, ids)["cross"], ids)["logits"]
"""
WRONG_CALLABLES = {
    "calls another component": (
        "    return parts.decodr(1)",
        "sample 0: there is no component 'decodr': encoder, decoder",
        "write `parts.decoder`",
    ),
    "never calls one": (
        "    ids = np.ones((1, 3), np.int64)\n    return dict(parts.encoder(ids, ids))",
        "run never calls the component 'decoder'",
        "call `parts.decoder(...)` in it, or take 'decoder' out of the recipe",
    ),
    "returns a list": (
        "    return [1, 2]",
        "run returned a list for sample 0; expected a mapping of names to arrays",
        "return `{'NAME': array}`",
    ),
    "returns a list as an output": (
        "    return {'tokens': [1, 2]}",
        "run: output 'tokens' of sample 0 is a list; expected an array of NumPy",
        "return `{'tokens': np.asarray(...)}`",
    ),
    "waits for a token that never comes": (
        ("    ids = np.ones((1, 3), np.int64)\n    cross, given = parts.encoder(ids, ids)['cross'], np.ones((1, 1), np.int64)\n"
        "    while given[0, -1] != 999:\n        token = parts.decoder(given, cross, ids)['logits'][:, -1:].argmax(-1)\n"
        "        given = np.append(given, token, axis=1)\n    return {'tokens': given}"),
        "sample 0: 'decoder' is called at other sizes than its graph is for: axis 'target' has size 33; expected 1 to 32",
        ("widen `dynamic_axes: {target: ...}`, or let `run` end its loop after so many calls, whatever tokens come, and keep "
        "samples to that range"),
    ),
    "gives a prompt that is longer than the axis": (
        "    ids = np.ones((1, 65), np.int64)\n    return dict(parts.encoder(ids, ids))",
        "sample 0: 'encoder' is called at other sizes than its graph is for: axis 'source' has size 65; expected 1 to 64",
        ("widen `dynamic_axes: {source: ...}`, or let `run` end its loop after so many calls, whatever tokens come, and keep "
        "samples to that range"),
    ),
    "gives one axis two sizes": (
        "    ids = np.ones((1, 3), np.int64)\n    return dict(parts.encoder(ids, ids[:, :2]))",
        ("sample 0: 'encoder' is called at other sizes than its graph is for: axis 'source' is 3 in 'input_ids' but 2 in "
        "'attention_mask'"),
        "give both inputs the same size along 'source'",
    ),
    "returns nothing": (
        "    parts.encoder",
        "run returned None for sample 0; expected a mapping of names to arrays",
        "return `{'NAME': array}`",
    ),
    "returns nothing but empty arrays": (
        (f"{BOTH}    return {{'tokens': np.zeros((0, 4), np.int64)}}"),
        "run returned empty arrays alone, which equal any others",
        "yield samples for which it gives something",
    ),
    "makes a NaN": (
        f"{BOTH}    return {{'logits': logits * np.float32(np.nan)}}",
        "run: sample 0: output 'logits' holds 320 NaN among 320 values, the first at [0, 0, 0]",
        "look for a division by zero or an overflow in it: no component gives a NaN",
    ),
    "makes an infinity": (
        f"{BOTH}    return {{'loss': np.float32(np.inf)}}",
        "run: sample 0: output 'loss' is inf",
        "look for a division by zero or an overflow in it: no component gives a NaN",
    ),
    "feeds a NaN": (
        ("    ids = np.ones((1, 3), np.int64)\n    cross = np.full((1, 3, 64), np.nan, np.float32)\n"
        "    return dict(parts.decoder(ids, cross, ids))"),
        ("sample 0: component 'decoder': output 'logits' holds 960 NaN among 960 values, the first at [0, 0, 0]; its input "
        "'cross' holds 192 NaN among 192 values, the first at [0, 0, 0]"),
        "mend the model, or leave that sample out: nothing can be compared with a NaN",
    ),
    "makes PyTorch fail": (
        "    ids = np.full((1, 3), 999)\n    return dict(parts.encoder(ids, ids))",
        "sample 0: Encoder.forward raised IndexError: index out of range in self",
        "run it by itself: the error is raised by the model's own code",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_CALLABLES)
def test_a_callable_that_is_wrong_says_where_and_what_to_write(tmp_path, case):
    body, what, fix = WRONG_CALLABLES[case]
    file = tmp_path / "mine.py"
    file.write_text(f"import numpy as np\n\n\ndef run(parts, sample):\n{body}\n")
    with pytest.raises(StepError) as caught:
        reference_of(tmp_path, Entrypoint(f"{file}:run"))
    assert (caught.value.what.replace(f"{file}:", ""), caught.value.fix) == (what, fix)
    assert "mine.py:" in caught.value.where or "seq2seq.py:" in caught.value.where


def test_names_that_depend_on_what_runs_the_components_are_refused(tmp_path, made):
    file = tmp_path / "mine.py"
    text = Path(MODELS / "seq2seq_translate.py").read_text()
    file.write_text(text.replace('"logits": logits}', '"scores": logits}'))
    with pytest.raises(StepError) as caught:
        judged(tmp_path, made, replace(PARAMS, run=Entrypoint(f"{file}:translate")))
    assert (
        "returned scores and tokens for sample-0; with PyTorch it was logits" in caught.value.what
    )
    assert "mine.py:" in caught.value.where


SAMPLE_FAULTS = {
    "[[np.ones(3)], [np.array([1, np.nan])]]": "'sample 1' holds 1 NaN among 2 values, at [1]",
    "[{'x': (np.float32('inf'),)}]": "'sample 0' is inf",
    "[]": "yields no sample",
}


@pytest.mark.parametrize("given", SAMPLE_FAULTS)
def test_a_sample_that_is_no_number_is_refused_before_anything_runs(tmp_path, given):
    file = tmp_path / "mine.py"
    file.write_text(f"import numpy as np\n\n\ndef samples():\n    return {given}\n")
    with pytest.raises(StepError) as caught:
        reference_of(tmp_path, samples=Entrypoint(f"{file}:samples"))
    assert SAMPLE_FAULTS[given] in caught.value.what
    assert caught.value.where == f"{file}:4"


FRAMES = """
import numpy as np
import torch


class Frames(torch.nn.Module):
    def forward(self, x):
        return x.unfold(1, 2, 2) @ torch.linspace(-1, 1, 12).reshape(2, 6)


def make():
    return Frames()


def rows():
    for length in (4, 6, 9):
        yield np.random.default_rng(length).normal(size=length).astype(np.float32)
"""


def frames_of(folder, text=FRAMES, *, batches=(1,), **args):
    """Run `run: ctc` on a module without weights, whose frames are two elements each."""
    (folder / "frames.py").write_text(text)
    x = DummyInput("x", "float32", ("batch", "length"))
    given = {"blank": 0, "receptive_field": 2, "stride": 2} | args
    plan = ctc_plan({"acoustic": (x,)}, {"acoustic": "logits"})
    axes = (Axis("batch", 1, 4, 2), Axis("length", 2, 16, 8))
    part = ReferencePart(
        "acoustic", Entrypoint(f"{folder}/frames.py:make"), (x,), axes, ("logits",)
    )
    params = pipeline_reference.PipelineReferenceParams(
        (part,), Entrypoint("ctc", {"plan": plan, **given}), Entrypoint(f"{folder}/frames.py:rows"), 4, batches
    )  # fmt: skip
    return run_step(pipeline_reference.KIND, params, folder / "reference")[0]


def test_rows_of_other_shapes_make_no_batch_where_no_mask_pads_them(tmp_path):
    alone, pairs = tmp_path / "alone", tmp_path / "pairs"
    alone.mkdir()
    pairs.mkdir()
    (note,) = frames_of(alone, batches=(1, 2)).notes
    assert "no batch of 2 was tried: the samples make none of one shape, and no mask" in note
    with pytest.raises(StepError, match="3 samples make no batch of 2 of one shape, and no mask"):
        frames_of(pairs, batches=(2,))


def test_an_id_beyond_the_vocabulary_is_refused(tmp_path):
    with pytest.raises(StepError, match=r"pipeline\.blank has 6; the model has 6 tokens, 0 to 5"):
        frames_of(tmp_path, blank=6)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("np.ones(17, np.float32)", "axis 'length' has size 17; expected 2 to 16"),
        ("np.ones(0, np.float32)", "axis 'length' has size 0; expected 2 to 16"),
        ("np.ones((1, 4), np.float32)", "input 'x' has shape [1, 4]; expected [length]"),
        ("np.array([1, np.nan, 2])", "input 'x' holds 1 NaN among 3 values"),
        ("{'y': np.ones(4)}", "found an input 'y'; expected x; 'x' is missing"),
        ("None", "input 'x' holds objects"),
    ],
)
def test_a_row_that_the_models_do_not_take_is_named_with_its_line(tmp_path, row, said):
    text = FRAMES.replace("yield np.random.default_rng(length)", f"yield {row} if length == 6 else np.random.default_rng(length)")  # fmt: skip
    with pytest.raises(StepError) as caught:
        frames_of(tmp_path, text)
    assert said in caught.value.what
    assert caught.value.where == f"{tmp_path}/frames.py:15 (sample 1)"


def measured(folder, made, baseline=True, **names):
    """(outcome, report) of a measurement of a variant `NAME` of the right graphs for each of `names`."""
    reference, models = made
    parts = tuple(RunPart(name, inputs, SessionSettings()) for name, inputs in INPUTS.items())
    options = BenchmarkOptions(max_time_s=0.4, warmup=1, threads=1, baseline=baseline)
    params = pipeline_latency.PipelineLatencyParams(
        dict.fromkeys(names, parts), MODULES, TRANSLATE, CPU_TARGET, options, **names["fp32"]
    )
    inputs = {f"model/{n}/{part}": path for n in names for part, path in models.items()}
    outcome, context = run_step(
        pipeline_latency.KIND, params, folder, {**inputs, "reference": reference}
    )
    return outcome, json.loads((context.output("report") / "report.json").read_text())


def test_variants_and_pytorch_are_measured_side_by_side_with_each_components_share(tmp_path, made):
    outcome, report = measured(tmp_path, made, fp32={}, same={})
    (point,) = report["points"]
    assert (point["point"], point["items"]) == ("samples=4", 1)
    assert set(point["results"]) == {"pytorch", "fp32", "same"} == set(report["models"])
    for each in point["results"].values():
        assert {name: part["calls"] for name, part in each["parts"].items()} == {
            "encoder": 1,
            "decoder": 12,
        }
        assert 0 < sum(part["share"] for part in each["parts"].values()) < 1
        assert each["samples"] % 4 == 0
        assert each["p50_low_ms"] <= each["p50_ms"] <= each["p50_high_ms"]
    assert outcome.metrics["baseline"] == {"name": "pytorch", "title": "PyTorch"}
    found = outcome.metrics["variants"]["fp32"]
    assert found["speedup"] == point["results"]["fp32"]["speedup"]
    assert found["parts"].keys() == {"encoder", "decoder"}
    assert found["size_bytes"] == sum(
        (each / "model.onnx").stat().st_size for each in made[1].values()
    )


def test_a_variant_of_pytorchs_name_a_missing_baseline_and_models_that_take_no_part(
    tmp_path, made
):
    _, report = measured(tmp_path / "a", made, fp32={}, pytorch={})
    assert set(report["models"]) == {"pytorch-baseline", "fp32", "pytorch"}
    outcome, report = measured(
        tmp_path / "b", made, baseline=False, fp32={"against": ("old.onnx",)}
    )
    assert report["baseline"] == {"absent": "`benchmark.baseline` is false"}
    assert report["points"][0]["results"]["fp32"]["speedup"] is None
    assert outcome.notes[0].startswith("old.onnx takes no part: it is one model")


def test_code_that_imports_more_than_numpy_is_not_in_a_package(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(Path(MODELS / "seq2seq_translate.py").read_text() + "\nimport torch\n")
    outcome, reference = reference_of(tmp_path, Entrypoint(f"{file}:translate"))
    assert (reference / feature.CODE_FILE).read_bytes() == b""
    assert outcome.notes[-1].endswith(
        "mine.py imports torch; one that imports NumPy alone is copied"
    )
    assert len(list(read_reference(reference))) == 4


def test_calls_are_kept_up_to_a_size_and_the_first_of_each_component_beyond_it():
    calls = []
    call = recorded(lambda name, feeds: {"y": np.zeros(4, np.float32)}, calls, most_bytes=32)
    for name in ("a", "a", "b", "b", "a"):
        call(name, {"x": np.zeros(4, np.float32)})
    assert [name for name, _, _ in calls] == ["a", "b"]
