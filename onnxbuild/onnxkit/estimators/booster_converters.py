"""Make onnxmltools' converters of boosters known to skl2onnx."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.estimators.boosters import booster_types
from onnxbuild.onnxkit.estimators.categories import add_whole_categories, categories_of

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

        convert = _mended(convert_xgboost)
        for kind in (xgboost.XGBClassifier, xgboost.XGBRFClassifier):
            update_registered_converter(
                kind, f"XGBoost{kind.__name__}", classifier_shapes, convert, options=zipmap
            )
        for kind in (xgboost.XGBRegressor, xgboost.XGBRFRegressor):
            update_registered_converter(kind, f"XGBoost{kind.__name__}", regressor_shapes, convert)
    if "lightgbm" in loaded:
        import lightgbm
        from onnxmltools.convert.lightgbm.operator_converters.LightGbm import convert_lightgbm

        convert = _mended(convert_lightgbm)
        classifier, regressor = booster_types()
        for kind in (lightgbm.LGBMClassifier, classifier):
            update_registered_converter(
                kind,
                f"LightGbm{kind.__name__}",
                classifier_shapes,
                convert,
                options=zipmap,
            )
        for kind in (lightgbm.LGBMRegressor, regressor):
            update_registered_converter(
                kind,
                f"LightGbm{kind.__name__}",
                regressor_shapes,
                convert,
                options={"split": None},
            )


def _mended(convert: Callable[[Any, Any, Any], None]) -> Callable[[Any, Any, Any], None]:
    """Return one of onnxmltools' converters without three faults of it.

    ONNX Runtime has no regression trees for integers, so the rows become float32; fractions of categories are cut off, as both
    packages do; and random forests of LightGBM are means of their own number of trees, where onnxmltools
    1.16 writes sums of two classes and divides by 100.
    """

    def converted(scope: Any, operator: Any, container: Any) -> None:
        estimator, before = operator.raw_operator, len(container.nodes)
        averages = getattr(estimator, "boosting_type", "") == "rf"
        if averages:
            operator.raw_operator = _Sums(estimator)
        try:
            convert(scope, operator, container)
        finally:
            operator.raw_operator = estimator
        trees = [n for n in container.nodes[before:] if n.op_type.startswith("TreeEnsemble")]
        name = scope.get_unique_variable_name("booster")
        rows = source = operator.inputs[0].full_name
        if not isinstance(operator.inputs[0].type, FloatTensorType | DoubleTensorType):
            rows = f"{name}_floats"
            container.add_node("Cast", [source], [rows], name=f"{name}_Cast", to=1, op_version=13)
        if columns := categories_of(estimator):
            width = int(estimator.n_features_in_)
            rows = add_whole_categories(
                container,
                rows,
                list(columns),
                width,
                name,
                negative=hasattr(estimator, "booster_"),
            )
        for node in trees:
            node.input[:] = [rows if each == source else each for each in node.input]
            if averages:
                _scale(node, 1 / _iterations(estimator))

    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType

    return converted


class _Sums:
    """A random forest of LightGBM, as its converter should see it: trees that are summed up.

    Args:
        forest: The estimator.
    """

    boosting_type = "gbdt"

    def __init__(self, forest: Any) -> None:
        self._forest = forest

    def __getattr__(self, name: str) -> Any:
        return getattr(self._forest, name)


def _iterations(forest: Any) -> int:
    booster = forest.booster_
    return int(booster.num_trees() // booster.num_model_per_iteration())


def _scale(node: Any, by: float) -> None:
    for each in node.attribute:
        if each.name in ("class_weights", "target_weights"):
            each.floats[:] = [weight * by for weight in each.floats]
