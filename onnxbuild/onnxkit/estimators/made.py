"""The estimator that a recipe names: returned by its callable, or loaded from its file."""

from __future__ import annotations

import random
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import FILE_DATA, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.user_code import an, call_entrypoint, frontend_of
from onnxbuild.onnxkit.estimators.boosters import lightgbm_estimator, xgboost_estimator
from onnxbuild.onnxkit.estimators.files import load_file

SKLEARN, XGBOOST, LIGHTGBM = "sklearn", "xgboost", "lightgbm"

_EXPECTED = {
    SKLEARN: "an estimator of scikit-learn, or a Pipeline",
    XGBOOST: "an XGBClassifier, an XGBRegressor or a Booster",
    LIGHTGBM: "an LGBMClassifier, an LGBMRegressor or a Booster",
}


def make_estimator(
    context: StepContext, model: Entrypoint, frontend: str, threads: int = 1
) -> Any:
    """The recipe's estimator, fitted.

    Python's and NumPy's random numbers are seeded with 0 before the callable runs.

    Args:
        context: The step's.
        model: The callable, or the estimator's file.
        frontend: `sklearn`, `xgboost` or `lightgbm`.
        threads: Of scikit-learn's OpenMP loops: one, so that sums are the same on machines of other sizes.

    Raises:
        StepError: The callable fails or returns something else, the file can't be loaded, or the estimator
            is not fitted.
    """
    where = context.where
    _set_threads(threads)
    if model.target == FILE_DATA:
        ((shown, path),) = context.files(model)
        made = load_file(path, shown, frontend, model.args, where)
    else:
        shown = model.target
        make = context.load(model)
        _seed()
        made = call_entrypoint(make, model, where)
    found = frontend_of(made)
    if found != frontend:
        verb = "holds" if model.target == FILE_DATA else "returned"
        raise StepError(
            f"{shown} {verb} {an(made)}; expected {_EXPECTED[frontend]}",
            where=where,
            fix=_other(made, found, is_file=model.target == FILE_DATA),
        )
    _refuse_unfitted(made, shown, where)
    return _with_interface(made, where)


def _set_threads(threads: int) -> None:
    """Answer loky's question for the count of cores, which scikit-learn asks and lscpu would answer."""
    from joblib.externals.loky.backend import context

    context.physical_cores_cache = threads


def _seed() -> None:
    import numpy as np

    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - what estimators without a random_state draw from


def _other(made: object, found: str, *, is_file: bool) -> str:
    if isinstance(made, type):
        return f"return a fitted instance: `{made.__name__}().fit(...)`"
    if found and is_file:
        return f"write `model: {{{found}: FILE}}`"
    return f"write `frontend: {found}`" if found else "return one of these, fitted"


def _refuse_unfitted(estimator: Any, shown: str, where: str) -> None:
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if frontend_of(estimator) != SKLEARN and not hasattr(estimator, "fit"):
        return  # a booster is what training returns
    try:
        check_is_fitted(estimator)
    except NotFittedError as error:
        raise StepError(
            f"{shown}: {type(estimator).__name__} is not fitted",
            where=where,
            fix="call `.fit(...)` before it is returned or saved",
        ) from error


def _with_interface(estimator: Any, where: str) -> Any:
    """Boosters as estimators; all others as they are."""
    if hasattr(estimator, "fit"):
        return estimator
    kind = frontend_of(estimator)
    return (xgboost_estimator if kind == XGBOOST else lightgbm_estimator)(estimator, where)
