"""XGBoost: a trained classifier, regressor or Booster, converted by onnxmltools and held against itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.expansion.estimators import (
    estimator_frontend,
    look_with,
    read_estimator,
    recognized_by,
)
from onnxbuild.expansion.model_source import ModelSource, SourceFacts
from onnxbuild.onnxkit.estimators.made import XGBOOST
from onnxbuild.onnxkit.estimators.outlines import EstimatorOutline, outline_of_xgboost


@dataclass(frozen=True, slots=True)
class XGBoostFileOptions:
    """Keys next to `xgboost` in `model`: none."""


def _read(
    path: Path, outline: EstimatorOutline, _options: object, written: Mapping[str, Any]
) -> SourceFacts:
    """What a file of XGBoost says."""
    return read_estimator(path, outline, written)


FEATURE = estimator_frontend(
    XGBOOST,
    ModelSource(
        help="a .json or .ubj file that XGBoost's `save_model` wrote, relative to this file: it says how many columns its rows have",
        options=XGBoostFileOptions,
        look=look_with(outline_of_xgboost),
        read=_read,
        recognizes=recognized_by(outline_of_xgboost, (".json", ".ubj")),
    ),
)
