"""Columns of a table that go into an estimator together, of several types."""

import numpy as np
import pytest

from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.estimators.convert import convert, matrix_of
from onnxbuild.onnxkit.estimators.outputs import outputs_of
from tests.late_imports import Late, late
from tests.steps.graphs import run_model

onnx, xgboost = Late("onnx"), Late("xgboost")
ColumnTransformer = Late("sklearn.compose", "ColumnTransformer")
RandomForestClassifier = Late("sklearn.ensemble", "RandomForestClassifier")
LogisticRegression = Late("sklearn.linear_model", "LogisticRegression")
make_pipeline = Late("sklearn.pipeline", "make_pipeline")
MinMaxScaler, StandardScaler = late("sklearn.preprocessing", "MinMaxScaler", "StandardScaler")

COLUMNS = (
    DummyInput("age", "int64", ("batch", 1)),
    DummyInput("income", "float32", ("batch", 1)),
    DummyInput("member", "bool", ("batch", 1)),
)


@pytest.mark.parametrize(
    "make",
    [
        lambda: make_pipeline(StandardScaler(), LogisticRegression()),
        lambda: make_pipeline(MinMaxScaler(), LogisticRegression()),
        lambda: RandomForestClassifier(5, random_state=0),
        lambda: xgboost.XGBClassifier(n_estimators=3, n_jobs=1),
    ],
    ids=["scaler", "range", "forest", "xgboost"],
)
def test_they_are_one_matrix_whatever_their_types_and_order(tmp_path, make):
    random = np.random.default_rng(0)
    feeds = {
        "age": random.integers(0, 3, (40, 1)),
        "income": random.random((40, 1), np.float32),
        "member": random.random((40, 1)) < 0.5,
    }
    rows = np.concatenate([each.astype(np.float32) for each in feeds.values()], axis=1)
    estimator = make().fit(rows, (rows[:, 1] > 0.5).astype(int))
    found = outputs_of(estimator)
    expected = {
        "label": estimator.predict(rows),
        "probabilities": estimator.predict_proba(rows).astype(np.float32),
    }
    model, names = convert(
        estimator, found, COLUMNS, opset=18, probe=(feeds, expected), where="m:convert"
    )
    assert [each.name for each in model.graph.input] == list(feeds)
    onnx.checker.check_model(model)
    onnx.save(model, tmp_path / "model.onnx")
    made = {names[name]: array for name, array in run_model(tmp_path, feeds).items()}
    assert made["label"].tolist() == expected["label"].tolist()
    np.testing.assert_allclose(made["probabilities"], expected["probabilities"], atol=1e-5)


def test_a_transformer_of_columns_gets_them_by_name():
    chosen = ColumnTransformer([("n", StandardScaler(), ["age", "income"])])
    assert matrix_of([chosen], COLUMNS) is None
    assert matrix_of([StandardScaler()], COLUMNS[:1]) is None
    assert matrix_of([StandardScaler()], COLUMNS).dtype == "float32"
    assert matrix_of([StandardScaler()], COLUMNS[::2]).dtype == "int64"
