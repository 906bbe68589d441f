import json
from dataclasses import fields

import numpy as np
import pytest

from onnxbuild.catalog import MODES
from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.target import CPU_TARGET
from onnxbuild.onnxkit.data.labelled_data import cut_into_batches
from onnxbuild.steps.evaluate import KIND, EvaluateOptions, EvaluateParams
from tests.fakes.step_context import run_step
from tests.steps.graphs import DIGITS, digits

IMAGE = DummyInput("image", "float32", ("batch", 1, 8, 8))

USER = """
import numpy as np

def data(count=2):
    for n in range(count):
        yield {"image": np.zeros((3, 1, 8, 8), np.float32)}, n

def unlabelled():
    yield {"image": np.zeros((3, 1, 8, 8), np.float32)}

def fixed(outputs, labels, score=0.5):
    assert [set(batch) for batch in outputs] == [{"logits"}] * len(labels)
    return float(score)

def counts(outputs, labels):
    return sum(len(batch["logits"]) for batch in outputs)

def reported(outputs, labels):
    return "good"

def many(count=100, right=80, batch=1):
    for start in range(0, count, batch):
        size = min(batch, count - start)
        truth = [int(n < right) for n in range(start, start + size)]
        yield {"image": np.full((size, 1, 8, 8), start / count, np.float32)}, truth

def share(outputs, labels):
    truth = [each for batch in labels for each in batch]
    assert len(truth) == sum(len(batch["logits"]) for batch in outputs)
    return sum(truth) / len(truth)

def needs_all(outputs, labels):
    return 1.0 if len(labels) == len({id(batch) for batch in labels}) == 100 else None

def whole(count=100):
    images = np.arange(count, dtype=np.float32)[:, None, None, None] * np.ones((1, 8, 8), np.float32)
    return {"image": images}, [n % 4 for n in range(count)]

def one_array(count=100):
    feeds, labels = whole(count)
    return [feeds, np.array(labels)]

def unequal():
    return {"image": np.zeros((10, 1, 8, 8), np.float32)}, np.zeros(9)

def joined(outputs, labels):
    assert outputs["logits"].shape == (*labels.shape, 10)
    return float((labels != 1).mean())

def misnamed(outputs, labels):
    return float((outputs["logit"].argmax(axis=1) == labels).mean())

def first_key(outputs, labels):
    return float(outputs[0]["no such"][0, 0])

def raises(outputs, labels):
    return labels["no such thing"]
"""

SCALED = """
import numpy as np
import torch

class Scaled(torch.nn.Module):
    def forward(self, scale, x):
        return {"y": x.sum(dim=1) * scale.sum()}

def load():
    return Scaled()

def data():
    for size in (10, 10, 8):
        yield {"scale": np.ones(2, np.float32), "x": np.ones((size, 8), np.float32)}, [1] * size

def share(outputs, labels):
    return float(np.mean([len(each["y"]) == len(truth) for each, truth in zip(outputs, labels)]))
"""


def evaluated(
    folder, *, model=None, data="data", metric="fixed", baseline=None, mode="", **options
):
    """Scores the digits CNN, or PyTorch where `model` is given."""
    folder.mkdir(exist_ok=True)
    (folder / "user.py").write_text(USER)
    arguments = {
        name: options.pop(name) for name in ("score", "count", "right", "batch") if name in options
    }

    def entrypoint(name):
        target = name if ":" in name else f"{folder}/user.py:{name}"
        taken = {"data": ("count",), "many": ("count", "right", "batch"), "fixed": ("score",)}.get(
            name, ()
        )
        return Entrypoint(target, {k: v for k, v in arguments.items() if k in taken})

    params = EvaluateParams(
        data=entrypoint(data),
        metric=entrypoint(metric),
        model=None if model is None else Entrypoint(model),
        inputs=(IMAGE,),
        axes=(Axis("batch", 1, 64, 2),),
        outputs=("logits",),
        variant="" if model else "int8",
        target=None if model else CPU_TARGET,
        options=EvaluateOptions(**options),
        precision=MODES[mode].precision if mode else "",
        mode_options=tuple(each.name for each in fields(MODES[mode].options)) if mode else (),
    )
    inputs = {} if model else {"model": digits(folder / "model")}
    if baseline is not None:
        inputs["baseline"] = folder / "baseline"
        inputs["baseline"].mkdir(exist_ok=True)
        reported = baseline if isinstance(baseline, dict) else {"score": baseline}
        (inputs["baseline"] / "report.json").write_text(json.dumps(reported))
    outcome, context = run_step(KIND, params, folder / "step", inputs)
    return outcome, json.loads((context.output("report") / "report.json").read_text())


def test_pytorch_and_the_exported_model_score_the_same_on_the_held_out_digits(tmp_path):
    own = {"data": f"{DIGITS}:evaluation", "metric": f"{DIGITS}:accuracy"}
    _, torch = evaluated(tmp_path / "torch", model=f"{DIGITS}:load", **own)
    outcome, runtime = evaluated(
        tmp_path / "onnx", baseline=torch["score"], min=0.97, max_drop=0.0, **own
    )
    assert torch["variant"] == "pytorch"
    assert torch["baseline_score"] is None
    assert torch["samples"] == runtime["samples"] == 450
    assert torch["score"] > 0.97
    assert runtime["drop"] == 0.0
    assert outcome.findings == ()


def test_even_and_odd_samples_are_scored_apart_too(tmp_path):
    _, theirs = evaluated(
        tmp_path / "torch", data="many", metric="share", right=100, model=f"{DIGITS}:load"
    )
    assert theirs["halves"] == [1.0, 1.0]
    assert theirs["half_drops"] is None
    _, own = evaluated(
        tmp_path / "a", data="many", metric="share", right=79, batch=7, baseline=theirs
    )
    assert own["halves"] == [40 / 50, 39 / 50]
    assert own["half_drops"] == pytest.approx([10 / 50, 11 / 50])
    _, few = evaluated(tmp_path / "b", data="many", metric="share", count=19, baseline=theirs)
    assert few["halves"] is None
    assert few["half_drops"] is None
    _, whole = evaluated(tmp_path / "c", data="many", metric="needs_all", baseline=theirs)
    assert whole["halves"] is None


def test_a_drop_beyond_the_bound_is_a_finding_with_both_scores(tmp_path):
    outcome, report = evaluated(tmp_path, score=0.9, baseline=0.95, max_drop=0.01)
    (finding,) = outcome.findings
    assert finding.what.endswith(
        "is 0.9, 0.05 below the reference's 0.95; expected at most 0.01 below"
    )
    assert report["drop"] == pytest.approx(0.05)


@pytest.mark.parametrize("mode", ["static", "dynamic", "weight_only"])
def test_a_fix_calibrates_only_what_is_calibrated(tmp_path, mode):
    outcome, _ = evaluated(tmp_path, score=0.9, baseline=0.95, max_drop=0.01, mode=mode)
    (finding,) = outcome.findings
    assert ("calibrate with more samples, " in finding.fix) == (mode == "static")
    assert ("`block_size`" in finding.fix) == (mode == "weight_only")
    assert "`nodes_to_exclude: [...]`" in finding.fix
    assert finding.fix.endswith(", or raise `evaluate: {max_drop: ...}`")


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"score": "nan"}, "returned nan; expected a finite number"),
        ({"score": "inf"}, "returned inf; expected a finite number"),
        ({"metric": "reported"}, "returned a str; expected a float"),
        ({"metric": "raises"}, "10}, its labels int64 array of 2"),
        ({"count": 0}, "yields nothing to evaluate on"),
        ({"data": "unlabelled"}, "found a dict; expected a pair (feeds, labels)"),
        (
            {"data": "unequal"},
            "different numbers of samples along their first axis: 'image' 10, labels 9",
        ),
        (
            {"data": "many", "metric": "misnamed"},
            (
                "raised KeyError: 'logit'; its outputs were {'logits': float32 array of 100 x 10}, "
                "its labels int64 array of 100"
            ),
        ),
        (
            {"data": "many", "metric": "first_key", "batch": 50},
            (
                "its outputs were a list of 2, each like {'logits': float32 array of 50 x 10}, its labels a "
                "list of 2, each like a list of 50, each like an int"
            ),
        ),
    ],
)
def test_what_gives_no_score_is_an_error(tmp_path, options, what):
    with pytest.raises(StepError) as caught:
        evaluated(tmp_path, **options)
    assert what in caught.value.what


def test_an_interval_holds_the_score_and_is_the_binomial_s_width(tmp_path):
    _, report = evaluated(tmp_path, data="many", metric="share", count=400, right=320, batch=7)
    low, high = report["score_interval"]
    width = 2 * 1.96 * (0.8 * 0.2 / 400) ** 0.5
    assert low < report["score"] == 0.8 < high
    assert high - low == pytest.approx(width, rel=0.25)
    assert report["resampled"]["unit"] == "sample"
    _, again = evaluated(tmp_path / "again", data="many", metric="share", count=400, right=320)
    assert again["resampled"]["scores"] == report["resampled"]["scores"]  # whatever the batches


def test_a_verdict_within_chance_of_its_bound_is_reported(tmp_path):
    near, _ = evaluated(tmp_path / "a", data="many", metric="share", min=0.79)
    assert near.findings == ()
    assert "the score 0.8 is within chance of its bound 0.79" in near.notes[0]
    assert "(95 % interval " in near.notes[0]
    wide, _ = evaluated(tmp_path / "w", data="many", metric="share", min=0.79, confidence=0.999)
    assert "(99.9 % interval " in wide.notes[0]
    far, _ = evaluated(tmp_path / "b", data="many", metric="share", min=0.5)
    assert far.notes == ()


def test_the_drop_is_compared_draw_by_draw(tmp_path):
    _, theirs = evaluated(tmp_path / "torch", model=f"{DIGITS}:load", data="many", metric="share")
    _, own = evaluated(
        tmp_path / "onnx", data="many", metric="share", right=79, baseline=theirs, max_drop=0.05
    )
    low, high = own["drop_interval"]
    assert 0 <= low <= own["drop"] <= high <= 0.05  # far narrower than that of either score
    assert own["score_interval"][1] - own["score_interval"][0] > high - low


def test_labels_without_rows_are_drawn_by_the_batch(tmp_path):
    _, few = evaluated(tmp_path / "few")
    assert (few["resampled"]["unit"], few["score_interval"]) == ("batch", None)
    _, enough = evaluated(tmp_path / "enough", count=12)
    assert enough["score_interval"] == [0.5, 0.5]
    exact, _ = evaluated(tmp_path / "exact", count=12, min=0.5)
    assert exact.notes == ()  # no draw is on the other side of the bound
    _, none = evaluated(tmp_path / "none", count=12, resamples=0)
    assert none["score_interval"] is None


def test_samples_next_to_an_input_without_a_batch_are_drawn_one_by_one(tmp_path):
    (tmp_path / "model.py").write_text(SCALED)
    target = f"{tmp_path}/model.py:"
    params = EvaluateParams(
        data=Entrypoint(f"{target}data"),
        metric=Entrypoint(f"{target}share"),
        model=Entrypoint(f"{target}load"),
        inputs=(DummyInput("scale", "float32", (2,)), DummyInput("x", "float32", ("batch", 8))),
        axes=(Axis("batch", 1, 64, 2),),
        outputs=("y",),
        variant="",
        target=None,
        options=EvaluateOptions(),
    )
    _, context = run_step(KIND, params, tmp_path / "step", {})
    report = json.loads((context.output("report") / "report.json").read_text())
    assert (report["samples"], report["resampled"]["unit"]) == (28, "sample")
    assert report["score_interval"] is not None


def test_a_metric_that_fails_on_a_draw_gives_no_interval_and_says_so(tmp_path):
    outcome, report = evaluated(tmp_path, data="many", metric="needs_all")
    assert report["score"] == 1.0
    assert report["score_interval"] is None
    assert "no interval of the score" in outcome.notes[0]


@pytest.mark.parametrize(
    ("data", "score", "batches"), [("many", 0.2, 15), ("whole", 0.75, 4), ("one_array", 0.75, 4)]
)
def test_a_metric_may_take_all_batches_joined(tmp_path, data, score, batches):
    options = {"batch": 7} if data == "many" else {}
    _, report = evaluated(tmp_path, data=data, metric="joined", **options)
    assert (report["score"], report["batches"], report["samples"]) == (score, batches, 100)
    assert report["score_interval"][0] < score < report["score_interval"][1]


def test_arrays_of_all_samples_are_cut_into_batches_that_the_model_takes():
    batch = (Axis("batch", 1, 8, 2),)
    table, row = DummyInput("table", "float32", (3,)), DummyInput("x", "float32", ("batch", 2))
    feeds = {"table": np.zeros(3), "x": np.arange(20).reshape(10, 2)}
    first, last = cut_into_batches(feeds, np.arange(10), (table, row), batch, "here")
    assert (first[0]["table"].shape, first[0]["x"].shape) == ((3,), (8, 2))
    assert last[0]["x"].tolist() == [[16, 17], [18, 19]]
    assert last[1].tolist() == [8, 9]
    fixed = (DummyInput("x", "float32", (1, 2)),)
    labels = {"kind": list("abcdefghij"), "box": np.zeros((10, 4))}
    *_, ninth = cut_into_batches({"x": feeds["x"]}, labels, fixed, (), "here")
    assert (ninth[0]["x"].shape, ninth[1]["kind"], ninth[1]["box"].shape) == (
        (1, 2),
        ["j"],
        (1, 4),
    )
    sample = (DummyInput("x", "float32", (2,)),)
    alone = [
        x["x"].shape for x, _ in cut_into_batches({"x": feeds["x"]}, np.arange(10), sample, (), "")
    ]
    assert alone == [(2,)] * 10
    fours = (DummyInput("x", "float32", (4, 2)),)
    with pytest.raises(StepError) as caught:
        list(cut_into_batches({"x": feeds["x"]}, np.arange(10), fours, (), "here"))
    assert caught.value.what == "the model takes 4 samples at a time, and 10 are no multiple of it"
    assert caught.value.fix == "return 8 samples"


def test_an_output_of_another_name_is_the_fix_of_a_metric_that_asks_for_it(tmp_path):
    with pytest.raises(StepError) as caught:
        evaluated(tmp_path, data="many", metric="misnamed")
    assert caught.value.fix.startswith("write `logits` in place of `logit`; ")
