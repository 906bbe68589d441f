"""Boosters without a scikit-learn interface, given one: what files hold, and what `train` returns."""

from __future__ import annotations

import functools
from typing import Any

from onnxbuild.core.errors import StepError

_CLASSIFIES = ("binary:", "multi:")
_REGRESSES = ("reg:", "count:")
"""Beginnings of XGBoost's objectives."""


def xgboost_estimator(booster: Any, where: str) -> Any:
    """An `xgboost.Booster` as XGBClassifier or XGBRegressor, as its objective says.

    Raises:
        StepError: The objective is of another kind.
    """
    import json

    import xgboost

    objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
    if objective.startswith(_CLASSIFIES):
        made = xgboost.XGBClassifier()
    elif objective.startswith(_REGRESSES):
        made = xgboost.XGBRegressor()
    else:
        raise StepError(
            f"the booster has the objective '{objective}', which can't be converted",
            where=where,
            fix=f"use one that begins with {', '.join((*_CLASSIFIES, *_REGRESSES))}",
        )
    made.load_model(booster.save_raw("json"))
    return made


def lightgbm_estimator(booster: Any, where: str) -> Any:
    """A `lightgbm.Booster` as a classifier or regressor, as its objective says.

    Raises:
        StepError: The objective is of another kind.
    """
    first = booster.dump_model(num_iteration=1)
    objective = str(first.get("objective", "none")).partition(" ")[0]
    if objective in ("binary", "multiclass", "multiclassova"):
        return booster_types()[0](booster)
    if objective in (
        "regression", "regression_l1", "huber", "fair", "poisson", "quantile", "mape", "gamma", "tweedie",
    ):  # fmt: skip
        return booster_types()[1](booster)
    raise StepError(
        f"the booster has the objective '{objective}', which can't be converted",
        where=where,
        fix="train it with binary, multiclass, or an objective of regression",
    )


@functools.cache
def booster_types() -> tuple[type, type]:
    """(classifier, regressor): types whose attributes onnxmltools reads."""
    import numpy as np
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

    class _Booster(BaseEstimator):  # type: ignore[misc]
        def __init__(self, booster: Any = None) -> None:
            self.booster = booster

        @property
        def booster_(self) -> Any:
            return self.booster

        @property
        def n_features_in_(self) -> int:
            return int(self.booster.num_feature())

        @property
        def boosting_type(self) -> str:
            return "rf" if "\naverage_output\n" in self.booster.model_to_string() else "gbdt"

        def __sklearn_is_fitted__(self) -> bool:
            return True

    class BoosterClassifier(ClassifierMixin, _Booster):  # type: ignore[misc]
        @property
        def classes_(self) -> Any:
            first = self.booster.dump_model(num_iteration=1)
            return np.arange(max(2, first["num_class"]))

        def predict_proba(self, rows: Any) -> Any:
            found = np.asarray(self.booster.predict(rows))
            return np.stack([1 - found, found], axis=1) if found.ndim == 1 else found

        def predict(self, rows: Any) -> Any:
            return self.classes_[self.predict_proba(rows).argmax(axis=1)]

    class BoosterRegressor(RegressorMixin, _Booster):  # type: ignore[misc]
        def predict(self, rows: Any) -> Any:
            return self.booster.predict(rows)

    return BoosterClassifier, BoosterRegressor
