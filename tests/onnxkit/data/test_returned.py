"""Which frontend takes what a callable returned."""

from pathlib import Path

import onnx
import pytest
import torch
import xgboost
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from onnxbuild.onnxkit.data.returned import frontend_fix, frontend_of


@pytest.mark.parametrize(
    ("value", "frontend"),
    [
        (torch.nn.Linear(1, 1), "pytorch"),
        (onnx.ModelProto(), "onnx"),
        (Path("model.onnx"), "onnx"),
        (LogisticRegression(), "sklearn"),
        (make_pipeline(xgboost.XGBClassifier()), "sklearn"),
        (xgboost.XGBClassifier(), "xgboost"),
        (LogisticRegression, ""),
        ("model.txt", ""),
        (3, ""),
    ],
)
def test_the_type_decides_the_frontend(value, frontend):
    assert frontend_of(value) == frontend
    assert frontend_fix(value, "-") == (f"write `frontend: {frontend}`" if frontend else "-")
