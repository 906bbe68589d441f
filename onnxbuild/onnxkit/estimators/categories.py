"""Columns of categories in LightGBM and XGBoost: whole numbers, whose fractions both packages cut off."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.estimators.boosters import booster_types

if TYPE_CHECKING:
    from onnxbuild.onnxkit.data.feeds import Feeds


def categories_of(estimator: Any) -> dict[int, list[int]]:
    """Return the number of each column of categories -> the categories that were seen in training.

    Args:
        estimator: Fitted; one that is no booster has no such columns.
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
    return {}


def with_categories(
    feeds: Feeds, inputs: Sequence[DummyInput], categories: Mapping[int, Sequence[int]]
) -> Feeds:
    """Return dummy feeds whose columns of categories hold categories; those that hold whole numbers stay.

    Args:
        feeds: One point's: rows of all columns, or an input for each column.
        inputs: As the recipe declares them.
        categories: As of `categories_of`.
    """
    import numpy as np

    names = [each.name for each in inputs]
    found = {name: feeds[name].copy() for name in names}
    for column, known in categories.items():
        alone = len(names) > 1
        name = names[column if alone else 0]
        array = found[name]
        if array.dtype.kind != "f" or array.ndim != 2:  # noqa: PLR2004
            continue
        values = array[:, 0 if alone else column]
        if np.array_equal(values, np.floor(values)) and (values >= 0).all():
            continue
        places = (np.abs(np.nan_to_num(values)) * len(known)).astype(np.int64) % len(known)
        chosen = np.array(known, array.dtype)[places]
        array[:, 0 if alone else column] = np.where(np.isnan(values), values, chosen)
    return found


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
