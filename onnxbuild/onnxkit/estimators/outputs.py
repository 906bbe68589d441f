"""Outputs of an estimator: their names in recipes, and their values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import call_user

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, slots=True)
class EstimatorOutput:
    """One output of an estimator.

    Attributes:
        name: Name in the recipe.
        method: The method that computes it.
        number: Place among the converted graph's outputs.
    """

    name: str
    method: str
    number: int


LABEL, PROBABILITIES, SCORES = "label", "probabilities", "scores"
PREDICTION, TRANSFORMED = "prediction", "transformed"

UNKNOWN_CATEGORY = (
    "let it take any category: `OneHotEncoder(handle_unknown='ignore')`; or give each column an input of its own, "
    "with categories that it knows: `fill: [...]` in `dummy_inputs`"
)
"""The fix where an encoder refuses dummy values."""


def outputs_of(estimator: Any) -> tuple[EstimatorOutput, ...]:
    """Return the outputs of an estimator, in the order of the converted graph.

    A classifier gives `label`, and `probabilities` or else `scores`; a detector of outliers `label` and
    `scores`; a clustering `label` and, where it has them, `scores` (the distances); a regressor
    `prediction`; anything else `transformed`.
    """
    from sklearn.base import is_clusterer, is_outlier_detector, is_regressor

    def found(*pairs: tuple[str, str]) -> tuple[EstimatorOutput, ...]:
        there = [pair for pair in pairs if hasattr(estimator, pair[1])]
        return tuple(EstimatorOutput(*pair, number) for number, pair in enumerate(there))

    if is_regressor(estimator):
        return found((PREDICTION, "predict"))
    if is_outlier_detector(estimator):
        return found((LABEL, "predict"), (SCORES, "decision_function"))
    if is_clusterer(estimator):
        return found((LABEL, "predict"), (SCORES, "transform"))
    if hasattr(estimator, "predict_proba"):
        return found((LABEL, "predict"), (PROBABILITIES, "predict_proba"))
    if hasattr(estimator, "predict"):
        return found((LABEL, "predict"), (SCORES, "decision_function"))
    return found((TRANSFORMED, "transform"))


def named_outputs(
    estimator: Any, wanted: Sequence[str], where: str
) -> tuple[EstimatorOutput, ...]:
    """Return all of an estimator's outputs; under the recipe's names, if it has others.

    Args:
        estimator: Any.
        wanted: The recipe's outputs: some of the estimator's own names, or as many others as it has
            outputs, which go by position; empty keeps its names.
        where: `recipe:step`.

    Raises:
        StepError: It has no such output, or none at all.
    """
    found = outputs_of(estimator)
    names = [each.name for each in found]
    if not found:
        raise StepError(
            f"{type(estimator).__name__} has none of predict, predict_proba and transform",
            where=where,
            fix="return an estimator, or a Pipeline that ends in one",
        )
    unknown = [name for name in wanted if name not in names]
    if not unknown:
        return found
    if len(unknown) == len(wanted) == len(found):
        return tuple(replace(each, name=name) for each, name in zip(found, wanted, strict=True))
    raise StepError(
        f"{type(estimator).__name__} has no output '{unknown[0]}'; it has {', '.join(names)}",
        where=where,
        fix=did_you_mean(unknown[0], names) or f"write `outputs: [{', '.join(names)}]`",
    )


def compute(
    estimator: Any,
    outputs: Sequence[EstimatorOutput],
    inputs: Sequence[DummyInput],
    feeds: Feeds,
    where: str,
) -> dict[str, np.ndarray]:
    """Compute the outputs by the estimator itself, in the types of its ONNX model.

    Labels are int64 or strings; floats are float64 if an input is, else float32.

    Raises:
        StepError: It fails, or an output is a list or of objects.
    """
    data = as_rows(estimator, inputs, feeds, where)
    wide = any(each.dtype == "float64" for each in inputs)
    found = {}
    for each in outputs:
        made = _called(estimator, each.method, data, where)
        found[each.name] = _as_array(estimator, each, made, wide=wide, where=where)
    return found


def _called(estimator: Any, method: str, data: Any, where: str) -> Any:
    from joblib import parallel_config

    target = f"{type(estimator).__name__}.{method}"
    with parallel_config(backend="sequential"):  # threads would add in an order of their own
        try:
            return call_user(
                lambda: getattr(estimator, method)(data), target, where, owner="the estimator's"
            )
        except StepError as error:
            fix = (
                "fit it on what it will be fed with: `X.astype('float32')`"
                if "dtype mismatch" in error.what
                else UNKNOWN_CATEGORY
                if "unknown categories" in error.what
                else "give the inputs what it was fitted on: types and shapes in `dummy_inputs`, values by "
                "`low`, `high` or `fill: [...]`"
            )
            raise StepError(error.what, where=where, fix=fix) from error


def as_rows(estimator: Any, inputs: Sequence[DummyInput], feeds: Feeds, where: str) -> Any:
    """Feeds in the form that an estimator takes: an array, a list of texts, or a table by column.

    Raises:
        StepError: There are several inputs, and pandas is not installed.
    """
    import numpy as np

    arrays = {each.name: feeds[each.name] for each in inputs}
    objects = {
        name: array.astype(object) if array.dtype.kind == "U" else array
        for name, array in arrays.items()
    }
    if len(objects) == 1:
        (array,) = objects.values()
        is_text = array.dtype.kind == "O" and array.ndim == 1
        return array.tolist() if is_text else array
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise StepError(
            f"{type(estimator).__name__} takes {len(objects)} columns by name, which needs pandas",
            where=where,
            fix="pip install pandas",
        ) from error
    wide = next((n for n, array in objects.items() if array.size != len(array)), None)
    if wide is not None:
        raise StepError(
            f"input '{wide}' has the shape {list(objects[wide].shape)}; of several inputs each is a column",
            where=where,
            fix=f"write `dummy_inputs: {{{wide}: {{shape: [batch, 1]}}}}`",
        )
    return pd.DataFrame({name: np.ravel(array) for name, array in objects.items()})


def _as_array(
    estimator: Any, output: EstimatorOutput, made: Any, *, wide: bool, where: str
) -> np.ndarray:
    import numpy as np
    from sklearn.base import is_classifier, is_regressor

    if hasattr(made, "toarray"):
        made = made.toarray()
    several = "several targets can't be converted: make one estimator of each"
    if isinstance(made, (list, tuple)):
        raise StepError(
            f"{type(estimator).__name__}.{output.method} gives a list of {len(made)} arrays",
            where=where,
            fix=several,
        )
    array: np.ndarray = np.asarray(made)
    kind = array.dtype.kind
    if kind == "f" and output.method == "predict" and array.ndim > 1 and is_classifier(estimator):
        raise StepError(
            f"{type(estimator).__name__}.predict gives {array.shape[1]} labels a row",
            where=where,
            fix=several,
        )
    if kind == "f" and output.method == "predict" and not is_regressor(estimator):
        raise StepError(
            f"the labels of {type(estimator).__name__} are {array.dtype}",
            where=where,
            fix="fit it on integers or strings: `y.astype(int)`",
        )
    if kind in "biu":
        return array.astype(np.int64)
    if kind == "f":
        return array.astype(np.float64 if wide else np.float32)
    if kind == "U" or (kind == "O" and all(isinstance(each, str) for each in array.ravel())):
        return array.astype(np.str_)
    raise StepError(
        f"{type(estimator).__name__}.{output.method} gives {array.dtype}",
        where=where,
        fix="fit it on integers or strings",
    )
