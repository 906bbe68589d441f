"""Options of estimators that skl2onnx ignores: it converts them to something else without a word."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from onnxbuild.core.errors import StepError


def refuse_unsupported(parts: Iterable[Any], where: str) -> None:
    """Check estimators for options that their converter ignores.

    Args:
        parts: An estimator and those inside of it, fitted.
        where: `recipe:step`.

    Raises:
        StepError: One has such an option.
    """
    for each in parts:
        fault = _fault(each)
        if fault:
            what, fix = fault
            raise StepError(f"{type(each).__name__} {what}", where=where, fix=fix)


def _fault(estimator: Any) -> tuple[str, str] | None:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

    if isinstance(estimator, (OneHotEncoder, OrdinalEncoder)):
        if any(each is not None for each in getattr(estimator, "infrequent_categories_", ())):
            return (
                "has infrequent categories (`min_frequency`, `max_categories`), which skl2onnx does not group",
                "fit it without `min_frequency` and `max_categories`, or group rare values before the model",
            )
        if isinstance(estimator, OrdinalEncoder) and any(map(_has_missing, estimator.categories_)):
            return (
                "has a code for missing values (`encoded_missing_value`), which skl2onnx does not write",
                "fill missing values before it: `make_pipeline(SimpleImputer(...), OrdinalEncoder())`",
            )
    trees = (HistGradientBoostingClassifier, HistGradientBoostingRegressor)
    if isinstance(estimator, trees) and any(_or_empty(estimator.is_categorical_)):
        return (
            "has categorical features (`categorical_features`), which skl2onnx compares as numbers",
            "fit it with `categorical_features=None`, on columns that a OneHotEncoder made",
        )
    return None


def _has_missing(categories: Any) -> bool:
    """Return whether NaN or None is among the categories of a column."""
    return any(each is None or each != each for each in categories)  # noqa: PLR0124 - NaN


def _or_empty(flags: Any) -> Any:
    return () if flags is None else flags
