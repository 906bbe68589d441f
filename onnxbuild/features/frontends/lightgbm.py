"""LightGBM: a trained classifier, regressor or Booster, converted by onnxmltools and held against itself."""

from __future__ import annotations

from onnxbuild.frontend_steps.estimators import booster_source, estimator_frontend
from onnxbuild.onnxkit.estimators.made import LIGHTGBM
from onnxbuild.onnxkit.estimators.outlines import outline_of_lightgbm

FEATURE = estimator_frontend(
    LIGHTGBM,
    booster_source(
        outline_of_lightgbm, (".txt",), "a text file that LightGBM's `save_model` wrote"
    ),
    "lightgbm",
)
