"""Make onnxmltools' converters of boosters known to skl2onnx."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.estimators.boosters import booster_types

_TREES = "gbtree"

_DECISIONS, _ZERO = re.compile(r"^decision_type=(.*)$", re.MULTILINE), 1
"""Decisions of a tree in LightGBM's text, one number for each node; bits 2 and 3 say what is missing there."""


def settle_boosters(parts: Iterable[Any], where: str) -> None:
    """Prepare boosters for conversion, in place: onnxmltools reads XGBoost's trees over unnamed columns alone.

    Args:
        parts: Estimators inside one estimator.
        where: `recipe:step`.

    Raises:
        StepError: One is no ensemble of plain trees, or takes zeros for missing values.
    """
    found = list(parts)
    if "xgboost" in sys.modules:
        _settle_xgboost(found, where)
    if "lightgbm" in sys.modules:
        _refuse_zeros_as_missing(found, where)


def _refuse_zeros_as_missing(parts: Iterable[Any], where: str) -> None:
    """Check that trees of LightGBM take zeros for numbers: ONNX has no missing value but NaN."""
    import lightgbm

    kinds: Any = (lightgbm.LGBMModel, *booster_types())
    for each in parts:
        if not isinstance(each, kinds):
            continue
        for line in _DECISIONS.findall(each.booster_.model_to_string()):
            if any(int(kind) >> 2 & 3 == _ZERO for kind in line.split()):
                raise StepError(
                    f"{type(each).__name__} was trained with `zero_as_missing`, which the converted graph would "
                    "not know: it has no missing value but NaN",
                    where=where,
                    fix="train it without `zero_as_missing`, with NaN in place of the zeros that are missing",
                )


def _settle_xgboost(parts: Iterable[Any], where: str) -> None:
    import xgboost

    for each in parts:
        if not isinstance(each, xgboost.XGBModel):
            continue
        booster = each.get_booster()
        kind = json.loads(booster.save_config())["learner"]["gradient_booster"]["name"]
        if kind != _TREES:
            raise StepError(
                f"{type(each).__name__} has the booster '{kind}', which can't be converted",
                where=where,
                fix=f"train it with `booster='{_TREES}'`",
            )
        booster.feature_names = None


def register_boosters(where: str) -> None:
    """Make onnxmltools' converters known to skl2onnx, for the packages that are loaded."""
    loaded = [name for name in ("xgboost", "lightgbm") if name in sys.modules]
    if not loaded:
        return
    from skl2onnx import update_registered_converter
    from skl2onnx.common.shape_calculator import (
        calculate_linear_classifier_output_shapes as classifier_shapes,
    )
    from skl2onnx.common.shape_calculator import (
        calculate_linear_regressor_output_shapes as regressor_shapes,
    )

    zipmap = {"nocl": [True, False], "zipmap": [True, False, "columns"]}
    try:
        import onnxmltools.convert  # noqa: F401
    except ModuleNotFoundError as error:
        raise StepError(
            f"models of {loaded[0]} need onnxmltools, which is not installed",
            where=where,
            fix="pip install onnxmltools",
        ) from error
    if "xgboost" in loaded:
        import xgboost
        from onnxmltools.convert.xgboost.operator_converters.XGBoost import convert_xgboost

        for kind in (xgboost.XGBClassifier, xgboost.XGBRFClassifier):
            update_registered_converter(
                kind, f"XGBoost{kind.__name__}", classifier_shapes, convert_xgboost, options=zipmap
            )
        for kind in (xgboost.XGBRegressor, xgboost.XGBRFRegressor):
            update_registered_converter(
                kind, f"XGBoost{kind.__name__}", regressor_shapes, convert_xgboost
            )
    if "lightgbm" in loaded:
        import lightgbm
        from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm

        classifier, regressor = booster_types()
        for kind in (lightgbm.LGBMClassifier, classifier):
            update_registered_converter(
                kind,
                f"LightGbm{kind.__name__}",
                classifier_shapes,
                convert_lightgbm,
                options=zipmap,
            )
        for kind in (lightgbm.LGBMRegressor, regressor):
            update_registered_converter(
                kind,
                f"LightGbm{kind.__name__}",
                regressor_shapes,
                convert_lightgbm,
                options={"split": None},
            )
