"""Which frontend takes what a callable returned."""

from pathlib import Path

import pytest
import torch

from onnxbuild.onnxkit.data.user_code import frontend_fix, frontend_of
from tests.late_imports import Late

xgboost, linear_model, pipeline = (
    Late("xgboost"),
    Late("sklearn.linear_model"),
    Late("sklearn.pipeline"),
)


@pytest.mark.parametrize(
    ("returned", "frontend"),
    [
        (lambda: torch.nn.Linear(1, 1), "pytorch"),
        (lambda: Path("model.onnx"), "onnx"),
        (lambda: pipeline.make_pipeline(xgboost.XGBClassifier()), "sklearn"),
        (lambda: linear_model.LogisticRegression, ""),
        (lambda: 3, ""),
    ],
)
def test_the_type_decides_the_frontend(returned, frontend):
    value = returned()
    assert frontend_of(value) == frontend
    assert frontend_fix(value, "-") == (f"write `frontend: {frontend}`" if frontend else "-")
