"""Boosters without a scikit-learn interface, given one; columns of categories, of boosters and of encoders."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.frameworks import np

if TYPE_CHECKING:
    from onnxbuild.onnxkit.data.feeds import Feeds


_CLASSIFIES = ("binary:", "multi:")

_REGRESSES = ("reg:", "count:")
"""Beginnings of XGBoost's objectives."""

_TREES = "gbtree"

_DECISIONS, _ZERO = re.compile(r"^decision_type=(.*)$", re.MULTILINE), 1
"""Decisions of a tree in LightGBM's text, one number for each node; bits 2 and 3 say what is missing there."""


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


def categories_of(estimator: Any) -> dict[int, list[Any]]:
    """Return the number of each column of categories -> the categories that were seen in training.

    Args:
        estimator: Fitted: a booster, an encoder, or what applies encoders to some of its columns.
    """
    if "lightgbm" in sys.modules:
        import lightgbm

        kinds: Any = (lightgbm.LGBMModel, *booster_types())
        if isinstance(estimator, kinds):
            return _of_lightgbm(estimator.booster_.dump_model())
    if "xgboost" in sys.modules:
        import xgboost

        if isinstance(estimator, xgboost.XGBModel):
            return _of_xgboost(estimator.get_booster())
    width = range(int(getattr(estimator, "n_features_in_", 0)))
    return {column: known for column, known in _of_encoders(estimator, width) if known}


def with_categories(feeds: Feeds, inputs: Sequence[DummyInput], estimator: Any) -> Feeds:
    """Return dummy feeds whose columns of categories hold known ones; what the recipe declares stays.

    Args:
        feeds: One point's: rows of all columns, or an input for each column.
        inputs: As the recipe declares them; floats that are drawn as fractions between `low` and `high` do not stay.
    """
    declared = {each.name: each for each in inputs}
    names, order = list(declared), [str(n) for n in getattr(estimator, "feature_names_in_", ())]
    found = {name: feeds[name].copy() for name in names}
    for column, known in categories_of(estimator).items():
        alone = len(names) > 1
        name = (
            names[0] if not alone else order[column] if set(order) == set(names) else names[column]
        )
        array = found[name]
        if array.ndim != 2 or array.dtype.kind not in "fiU":  # noqa: PLR2004
            continue
        values = array[:, 0 if alone else column]
        if _is_declared(values, declared[name]) or not _are_kin(known, values):
            continue
        if values.dtype.kind == "U":
            places: np.ndarray = np.arange(len(values)) + column
        else:
            scale = len(known) if values.dtype.kind == "f" else 1
            places = (np.abs(np.nan_to_num(values)) * scale).astype(np.int64)
        chosen = np.array(known)[places % len(known)]
        if values.dtype.kind == "f":
            chosen = np.where(np.isnan(values), values, chosen.astype(values.dtype))
        if values.dtype.kind == "U":
            found[name] = array = array.astype(np.promote_types(array.dtype, chosen.dtype))
        array[:, 0 if alone else column] = chosen
    return found


def _is_declared(values: Any, declared: DummyInput) -> bool:
    """Return whether the recipe chose the values of a column, or floats are whole numbers already."""
    if values.dtype.kind == "f":
        return bool(np.array_equal(values, np.floor(values)) and (values >= 0).all())
    return any(each is not None for each in (declared.low, declared.high, declared.fill))


def _are_kin(known: Sequence[Any], values: Any) -> bool:
    """Return whether categories are texts where values are, and numbers where they are numbers."""
    return all(isinstance(each, str) == (values.dtype.kind == "U") for each in known)


def _of_encoders(part: Any, columns: Sequence[int]) -> Iterator[tuple[int, list[Any]]]:
    """Yield the columns of scikit-learn's encoders, missing values left out.

    Args:
        columns: The columns of the whole that it takes.
    """
    from sklearn.impute import SimpleImputer

    if hasattr(part, "best_estimator_"):
        yield from _of_encoders(part.best_estimator_, columns)
    for _, step in getattr(part, "steps", ()):
        yield from _of_encoders(step, columns)
        if not isinstance(step, SimpleImputer):
            return  # columns are others from here on
    for name, inner, *_ in getattr(part, "transformers_", ()):
        places = part._transformer_to_input_indices.get(name, ())  # noqa: SLF001 - names, slices, masks, callables
        yield from _of_encoders(inner, [columns[each] for each in places])
    for column, known in zip(columns, getattr(part, "categories_", ()), strict=False):
        yield column, [each for each in known if each is not None and each == each]  # noqa: PLR0124 - NaN


def add_exact_categories(scope: Any, operator: Any, container: Any) -> None:
    """Convert a OneHotEncoder, with fractions as unknown categories: skl2onnx 1.20 cuts them off."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType
    from skl2onnx.operator_converters.one_hot_encoder import convert_sklearn_one_hot_encoder

    before = len(container.nodes)
    convert_sklearn_one_hot_encoder(scope, operator, container)
    reading = container.nodes[before:]
    unknown = 1 + 2 * max(
        (abs(c) for each in operator.raw_operator.categories_ for c in each), default=0
    )
    for given in operator.inputs:
        if not isinstance(given.type, FloatTensorType | DoubleTensorType):
            continue
        name, source = scope.get_unique_variable_name("categories"), given.full_name
        kind = 1 if isinstance(given.type, FloatTensorType) else 11
        container.add_initializer(f"{name}_unknown", kind, [], [float(unknown)])
        for node in reading:
            node.input[:] = [f"{name}_exact" if each == source else each for each in node.input]
        for operation, takes, made in (
            ("Floor", [source], "floor"),
            ("Equal", [source, f"{name}_floor"], "whole"),
            ("Where", [f"{name}_whole", source, f"{name}_unknown"], "exact"),
        ):
            container.add_node(
                operation, takes, [f"{name}_{made}"], name=f"{name}_{operation}", op_version=13
            )


def add_whole_categories(
    container: Any, source: str, columns: Sequence[int], width: int, name: str, *, negative: bool
) -> str:
    """Add nodes that cut the fractions off columns of categories; returns the name of the result.

    Args:
        container: skl2onnx's, of nodes.
        source: The name of the rows, float32.
        columns: Numbers of the columns.
        width: Number of all columns.
        name: Stem of new names, which nothing else has.
        negative: Whether -0.5 is category 0, as for LightGBM; for XGBoost it is none.
    """
    mask = [column in columns for column in range(width)]
    container.add_initializer(f"{name}_categories", 9, [1, width], mask)
    towards_zero = (
        ("Abs", [source], "magnitude"),
        ("Floor", [f"{name}_magnitude"], "floor"),
        ("Sign", [source], "sign"),
        ("Mul", [f"{name}_floor", f"{name}_sign"], "whole"),
    )
    for operator, given, made in (
        *(towards_zero if negative else (("Floor", [source], "whole"),)),
        ("Where", [f"{name}_categories", f"{name}_whole", source], "rows"),
    ):
        container.add_node(
            operator, given, [f"{name}_{made}"], name=f"{name}_{operator}", op_version=13
        )
    return f"{name}_rows"


def _of_lightgbm(dumped: Mapping[str, Any]) -> dict[int, list[int]]:
    columns: set[int] = set()
    waiting = [each["tree_structure"] for each in dumped["tree_info"]]
    while waiting:
        node = waiting.pop()
        if node.get("decision_type") == "==":
            columns.add(int(node["split_feature"]))
        waiting += [node[side] for side in ("left_child", "right_child") if side in node]
    names, infos = dumped["feature_names"], dumped.get("feature_infos", {})
    return {
        column: [int(each) for each in infos.get(names[column], {}).get("values", ()) if each >= 0]
        or [0, 1]
        for column in sorted(columns)
    }


def _of_xgboost(booster: Any) -> dict[int, list[int]]:
    types: Sequence[str] = booster.feature_types or ()
    columns = [n for n, kind in enumerate(types) if kind == "c"]
    if not columns:
        return {}
    model = json.loads(bytes(booster.save_raw("json")))["learner"]["gradient_booster"]["model"]
    most = max((max(each["categories"], default=0) for each in model["trees"]), default=0)
    return {column: list(range(most + 1)) for column in columns}


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
                kind, f"LightGbm{kind.__name__}", classifier_shapes, convert, options=zipmap
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
    """A random forest of LightGBM, as its converter should see it: trees that are summed up."""

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
