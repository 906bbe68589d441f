"""Columns of categories: dummies hold known ones; LightGBM and XGBoost cut fractions off, scikit-learn knows no fraction."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.estimators.boosters import booster_types

if TYPE_CHECKING:
    from onnxbuild.onnxkit.data.feeds import Feeds


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
        estimator: Fitted.
    """
    import numpy as np

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
    import numpy as np

    if values.dtype.kind == "f":
        return bool(np.array_equal(values, np.floor(values)) and (values >= 0).all())
    return any(each is not None for each in (declared.low, declared.high, declared.fill))


def _are_kin(known: Sequence[Any], values: Any) -> bool:
    """Return whether categories are texts where values are, and numbers where they are numbers."""
    return all(isinstance(each, str) == (values.dtype.kind == "U") for each in known)


def _of_encoders(part: Any, columns: Sequence[int]) -> Iterator[tuple[int, list[Any]]]:
    """Yield the columns of scikit-learn's encoders, missing values left out.

    Args:
        part: An estimator.
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
