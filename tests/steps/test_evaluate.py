import json

import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
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

def told(outputs, labels):
    return "good"

def raises(outputs, labels):
    return labels["no such thing"]
"""


def evaluated(folder, *, model=None, data="data", metric="fixed", baseline=None, **options):
    """Scores the digits CNN, or PyTorch where `model` is given."""
    folder.mkdir(exist_ok=True)
    (folder / "user.py").write_text(USER)
    arguments = {name: options.pop(name) for name in ("score", "count") if name in options}

    def entrypoint(name):
        target = name if ":" in name else f"{folder}/user.py:{name}"
        taken = {"data": ("count",), "fixed": ("score",)}.get(name, ())
        return Entrypoint(target, {k: v for k, v in arguments.items() if k in taken})

    params = EvaluateParams(
        data=entrypoint(data),
        metric=entrypoint(metric),
        model=None if model is None else Entrypoint(model),
        inputs=(IMAGE,),
        outputs=("logits",),
        variant="" if model else "int8",
        provider="" if model else "cpu",
        provider_options={},
        options=EvaluateOptions(**options),
    )
    inputs = {} if model else {"model": digits(folder / "model")}
    if baseline is not None:
        inputs["baseline"] = folder / "baseline"
        inputs["baseline"].mkdir(exist_ok=True)
        (inputs["baseline"] / "report.json").write_text(json.dumps({"score": baseline}))
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


def test_calibration_and_test_images_share_none(tmp_path):
    from tests.steps.graphs import digits_module

    (train, _), (test, _) = digits_module().split()
    known = {image.tobytes() for image in train}
    shared = sum(image.tobytes() in known for image in test)
    assert len(train) + len(test) == 1797
    assert shared == 0


def test_a_score_below_the_least_is_a_finding(tmp_path):
    outcome, report = evaluated(tmp_path, score=0.94, min=0.95)
    (finding,) = outcome.findings
    assert finding.what.endswith("user.py:fixed is 0.94; expected at least 0.95")
    assert finding.where == "variant 'int8'"
    assert report["passed"] is False


def test_a_drop_beyond_the_bound_is_a_finding_with_both_scores(tmp_path):
    outcome, report = evaluated(tmp_path, score=0.9, baseline=0.95, max_drop=0.01)
    (finding,) = outcome.findings
    assert finding.what.endswith("is 0.9, 0.05 below PyTorch's 0.95; expected at most 0.01 below")
    assert report["drop"] == pytest.approx(0.05)


def test_a_drop_of_exactly_the_bound_passes(tmp_path):
    outcome, _ = evaluated(tmp_path, score=0.98, baseline=0.99, max_drop=0.01)
    assert outcome.findings == ()


def test_a_score_above_the_baseline_passes(tmp_path):
    outcome, report = evaluated(tmp_path, score=0.99, baseline=0.98, max_drop=0)
    assert outcome.findings == ()
    assert report["drop"] < 0


def test_any_number_is_a_score(tmp_path):
    outcome, _ = evaluated(tmp_path, metric="counts")
    assert outcome.metrics["score"] == 6.0


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"score": "nan"}, "returned nan; expected a finite number"),
        ({"score": "inf"}, "returned inf; expected a finite number"),
        ({"metric": "told"}, "returned a str; expected a float"),
        ({"metric": "raises"}, "raised TypeError: list indices must be integers"),
        ({"count": 0}, "yields nothing to evaluate on"),
        ({"data": "unlabelled"}, "found a dict; expected a pair (feeds, labels)"),
    ],
)
def test_what_gives_no_score_is_an_error(tmp_path, options, what):
    with pytest.raises(StepError) as caught:
        evaluated(tmp_path, **options)
    assert what in caught.value.what
