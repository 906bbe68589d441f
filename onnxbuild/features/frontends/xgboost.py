"""XGBoost: a trained classifier, regressor or Booster, converted by onnxmltools and held against itself."""

from __future__ import annotations

from onnxbuild.frontend_steps.estimators import booster_source, estimator_frontend
from onnxbuild.onnxkit.estimators.made import XGBOOST
from onnxbuild.onnxkit.estimators.outlines import outline_of_xgboost

FEATURE = estimator_frontend(
    XGBOOST,
    booster_source(
        outline_of_xgboost,
        (".json", ".ubj"),
        "a .json or .ubj file that XGBoost's `save_model` wrote",
    ),
    "xgboost",
)
