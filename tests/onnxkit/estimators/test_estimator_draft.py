"""What an estimator says of its inputs once it is loaded."""

import importlib.util

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.estimators.made import draft_of_estimator_file
from tests.late_imports import Late, late

if importlib.util.find_spec("sklearn") is None:
    pytest.skip("needs scikit-learn", allow_module_level=True)

joblib = Late("joblib")  # comes with scikit-learn
make_column_transformer = Late("sklearn.compose", "make_column_transformer")
TfidfVectorizer = Late("sklearn.feature_extraction.text", "TfidfVectorizer")
LogisticRegression = Late("sklearn.linear_model", "LogisticRegression")
make_pipeline = Late("sklearn.pipeline", "make_pipeline")
FunctionTransformer, StandardScaler = late(
    "sklearn.preprocessing", "FunctionTransformer", "StandardScaler"
)

ROWS = np.random.default_rng(0).standard_normal((20, 5))
LABELS = (ROWS.sum(1) > 0).astype(int)


def draft_of(estimator, folder):
    joblib.dump(estimator, folder / "e.joblib")
    return draft_of_estimator_file(folder / "e.joblib", "sklearn", {})


def test_rows_are_as_wide_as_those_that_it_was_fitted_with(tmp_path):
    draft = draft_of(
        make_pipeline(StandardScaler(), LogisticRegression()).fit(ROWS, LABELS), tmp_path
    )
    assert draft.recipe == {
        "dummy_inputs": {"features": {"dtype": "float32", "shape": ["batch", 5]}}
    }
    assert draft.comments == {"dummy_inputs": "Pipeline was fitted with rows of 5"}
    assert not draft.holes


def test_a_pipeline_of_texts_takes_texts(tmp_path):
    texts = ["good day", "bad night"] * 3
    made = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(texts, [1, 0] * 3)
    assert draft_of(made, tmp_path).recipe == {
        "dummy_inputs": {"text": {"dtype": "string", "shape": ["batch"]}}
    }


def test_columns_that_are_selected_by_name_are_inputs_to_fill_in(tmp_path):
    columns = make_column_transformer((StandardScaler(), [0, 1]))
    made = make_pipeline(columns, LogisticRegression()).fit(ROWS[:, :2], LABELS)
    columns.transformers = [("scale", StandardScaler(), ["age", "size"])]  # as of a DataFrame
    columns.feature_names_in_ = np.array(["age", "size"], dtype=object)
    draft = draft_of(made, tmp_path)
    assert list(draft.recipe["dummy_inputs"]) == ["age", "size"]
    assert list(draft.holes) == ["dummy_inputs"]


def test_an_estimator_without_a_width_is_a_hole(tmp_path):
    draft = draft_of(FunctionTransformer(), tmp_path)
    assert list(draft.holes) == ["dummy_inputs"]


def test_a_damaged_pickle_is_one_error(tmp_path):
    (tmp_path / "e.joblib").write_bytes(b"\x80\x04no pickle")
    with pytest.raises(StepError, match="can't be loaded"):
        draft_of_estimator_file(tmp_path / "e.joblib", "sklearn", {})
