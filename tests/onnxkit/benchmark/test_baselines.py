"""The frameworks that a baseline runs in: what one run is, and what reports say of it."""

import importlib

import joblib
import lightgbm
import numpy as np
import pytest
import xgboost
from sklearn.datasets import load_iris
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, RidgeClassifier

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.benchmark.baseline import (
    BEFORE,
    Baseline,
    BaselineRunner,
    Original,
    OriginalParams,
    ShownBaseline,
    baseline_of,
    one_heading,
)
from onnxbuild.onnxkit.benchmark.baselines import RUNNERS, called_method, described, runner_of
from onnxbuild.onnxkit.estimators.outputs import outputs_of
from tests.fakes.step_context import FolderContext

ROWS, LABELS = load_iris(return_X_y=True)
ROWS = ROWS.astype(np.float32)
INPUTS = (DummyInput("features", "float32", ("batch", 4)),)
MINE = BaselineRunner(
    "mine", "Mine", "one call of mine", lambda original: lambda: lambda feeds: feeds
)


def original(estimator, folder, outputs=(), threads=1):
    """An estimator that a callable returns."""
    joblib.dump(estimator, folder / "model.joblib")
    file = folder / "model.py"
    file.write_text(
        f"import joblib\ndef load(): return joblib.load({str(folder / 'model.joblib')!r})\n"
    )
    model = Entrypoint(f"{file}:load")
    params = OriginalParams(model, INPUTS, outputs, (Axis("batch", 1, 8, 2),), {})
    return Original(FolderContext(params, folder), params, threads)


@pytest.mark.parametrize(
    ("runner", "estimator"),
    [
        ("scikit-learn", RandomForestClassifier(5, random_state=0)),
        ("xgboost", xgboost.XGBClassifier(n_estimators=3)),
        ("lightgbm", lightgbm.LGBMClassifier(n_estimators=3, verbose=-1)),
    ],
)
def test_an_estimator_is_called_once_for_all_outputs(tmp_path, runner, estimator):
    estimator.fit(ROWS, LABELS)
    opener = RUNNERS[runner].opener
    whole = original(estimator, tmp_path, ("label", "probabilities"))
    run_once = opener(whole)()({"features": ROWS[:3]})
    assert np.allclose(run_once(), estimator.predict_proba(ROWS[:3]))
    label = original(estimator, tmp_path, ("label",))
    assert opener(label)()({"features": ROWS[:3]})().tolist() == LABELS[:3].tolist()


def test_what_an_estimator_refuses_is_an_error_of_the_users(tmp_path):
    model = LinearRegression().fit(ROWS, LABELS)
    bind = RUNNERS["scikit-learn"].opener(original(model, tmp_path))()
    with pytest.raises(StepError, match=r"LinearRegression\.predict raised ValueError: X has 3"):
        bind({"features": ROWS[:2, :3]})


@pytest.mark.parametrize("threads", [1, 2])
def test_native_code_gets_the_threads_of_the_benchmark(tmp_path, threads):
    model = lightgbm.LGBMClassifier(n_estimators=3, verbose=-1).fit(ROWS, LABELS)
    opener = RUNNERS["lightgbm"].opener
    run_once = opener(original(model, tmp_path, threads=threads))()({"features": ROWS[:3]})
    (estimator,) = (
        each.cell_contents.__self__
        for each in run_once.__closure__
        if hasattr(each.cell_contents, "__self__")
    )
    assert estimator.n_jobs == threads


def test_labels_cost_no_second_call():
    def called(estimator, *names):
        wanted = [each for each in outputs_of(estimator) if each.name in names]
        return called_method(wanted)

    assert called(RandomForestClassifier(), "label", "probabilities") == "predict_proba"
    assert called(RandomForestClassifier(), "label") == "predict"
    assert called(RidgeClassifier(), "label", "scores") == "decision_function"
    assert called(IsolationForest(), "label", "scores") == "decision_function"


def test_a_report_says_its_baseline_or_why_there_is_none():
    said = described(Baseline("jax"), RUNNERS["jax"])
    assert baseline_of({"baseline": said}) == ShownBaseline("jax", "JAX")
    assert baseline_of({"baseline": said}).heading == "vs JAX"
    none = described(Baseline(absent="nobody has it"), None)
    assert baseline_of({"baseline": none}) == ShownBaseline(absent="nobody has it")
    assert baseline_of({"baseline": none}).heading == "vs baseline"
    assert baseline_of({}) == BEFORE  # a report of an earlier release
    assert BEFORE.heading == "vs PyTorch"


def test_one_column_has_one_heading():
    jax, torch, none = ShownBaseline("jax", "JAX"), BEFORE, ShownBaseline(absent="why")
    assert one_heading([jax, none]) == "vs JAX"
    assert one_heading([jax, torch]) == "vs baseline"
    assert one_heading([none]) == "vs baseline"
    assert one_heading([]) == "vs PyTorch"


def test_a_plug_in_brings_a_runner_of_its_own():
    here = f"{__name__}:MINE"
    assert runner_of(Baseline(here), "test:step") is importlib.import_module(__name__).MINE
    for wrong in (f"{__name__}:ROWS", f"{__name__}:nothing", "no_such_module:X", ":"):
        with pytest.raises(StepError, match="which is no BaselineRunner") as refused:
            runner_of(Baseline(wrong), "test:step")
        assert "baseline: false" in refused.value.fix
