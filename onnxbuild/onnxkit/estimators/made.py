"""The estimator that a recipe names: returned by its callable, or loaded from its file."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from onnxbuild.core.draft import Draft
from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.recipe import FILE_DATA, INPUT_NAME, Entrypoint
from onnxbuild.core.step import StepContext
from onnxbuild.onnxkit.data.user_code import an, call_entrypoint, frontend_of
from onnxbuild.onnxkit.estimators.boosters import lightgbm_estimator, xgboost_estimator
from onnxbuild.onnxkit.estimators.outlines import FEATURES, SKOPS
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.sources.parts import BATCH

SKLEARN, XGBOOST, LIGHTGBM = "sklearn", "xgboost", "lightgbm"

_EXPECTED = {
    SKLEARN: "an estimator of scikit-learn, or a Pipeline",
    XGBOOST: "an XGBClassifier, an XGBRegressor or a Booster",
    LIGHTGBM: "an LGBMClassifier, an LGBMRegressor or a Booster",
}

TRUSTED = "trusted"
"""Key in Entrypoint.args of a .skops file: names of types that may be loaded."""

_INPUTS = "dummy_inputs"

_TEXT = {"text": {"dtype": "string", "shape": [BATCH]}}

_COLUMN = {"dtype": "float32", "shape": [BATCH, 1]}


def make_estimator(
    context: StepContext, model: Entrypoint, frontend: str, threads: int = 1
) -> Any:
    """The recipe's estimator, fitted.

    Python's and NumPy's random numbers are seeded with 0 before the callable runs.

    Args:
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
    random.seed(0)
    np.random.seed(0)


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


def load_file(
    path: Path, shown: str, frontend: str, args: Mapping[str, object], where: str
) -> Any:
    """The estimator in a file.

    Args:
        shown: Name of the file, for messages.
        frontend: Name of the frontend that reads the file.
        args: Arguments that the recipe gives for it.
        where: `recipe:step`.

    Raises:
        StepError: It is damaged, was written by another version, or holds types that are not trusted.
    """
    loaders: Mapping[str, Callable[[], Any]] = {
        "sklearn": lambda: _sklearn(
            path, shown, cast("Sequence[str]", args.get(TRUSTED, ())), where
        ),
        "xgboost": lambda: _xgboost(path),
        "lightgbm": lambda: _lightgbm(path),
    }

    def blamed(error: BaseException) -> StepError:
        if isinstance(error, ModuleNotFoundError):
            name = str(error.name).partition(".")[0]
            return StepError(
                f"{shown} needs the module '{error.name}', which is not installed",
                where=where,
                fix=f"`pip install {name}`; for a module of your own take a callable: "
                "`model: {entrypoint: FILE.py:CALLABLE}`",
            )
        reason = message_of(error).partition("\n")[0] or "it breaks off"
        return StepError(
            f"{shown} can't be loaded: {type(error).__name__}: {reason}",
            where=where,
            fix="check that the file is complete, or save the estimator again with the packages that "
            "are installed here",
        )

    with external_code(blamed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return loaders[frontend]()


def untrusted_types(path: Path) -> list[str]:
    """Return the names of the types in a .skops file that skops does not trust by itself; nothing is loaded."""
    try:
        import skops.io
    except ModuleNotFoundError:  # reported where the file is loaded
        return []
    return list(skops.io.get_untrusted_types(file=path))


def _sklearn(path: Path, shown: str, trusted: Sequence[str], where: str) -> Any:
    from sklearn.exceptions import InconsistentVersionWarning

    warnings.simplefilter("error", InconsistentVersionWarning)
    try:
        return _skops(path, shown, trusted, where) if path.suffix == SKOPS else _pickle(path)
    except InconsistentVersionWarning as warning:
        raise StepError(
            f"{shown} was written by scikit-learn {warning.original_sklearn_version}; "
            f"{warning.current_sklearn_version} is installed",
            where=where,
            fix=f"`pip install scikit-learn=={warning.original_sklearn_version}`, or fit and save it again",
        ) from warning


def _pickle(path: Path) -> Any:
    """Load a file that joblib or pickle wrote. It may run any code: the recipe allows it, and the step is fenced."""
    import joblib

    return joblib.load(path)


def _skops(path: Path, shown: str, trusted: Sequence[str], where: str) -> Any:
    try:
        import skops.io
    except ModuleNotFoundError as error:
        raise StepError(
            f"{shown} needs skops, which is not installed", where=where, fix="pip install skops"
        ) from error
    unknown = [
        each for each in skops.io.get_untrusted_types(file=path) if each not in set(trusted)
    ]
    if unknown:
        every = ", ".join([*trusted, *unknown])
        raise StepError(
            f"{shown} holds types that skops does not trust by itself: {', '.join(unknown)}",
            where=where,
            fix=f"if you know where the file is from, write `trusted: [{every}]` next to `sklearn`",
        )
    return skops.io.load(path, trusted=list(trusted))


def _xgboost(path: Path) -> Any:
    import xgboost

    return xgboost.Booster(model_file=path)


def _lightgbm(path: Path) -> Any:
    import lightgbm

    return lightgbm.Booster(model_file=str(path))


def draft_of_estimator_file(path: Path, frontend: str, args: dict[str, object]) -> Draft:
    """The inputs of the estimator in a file.

    Args:
        path: The file; a pickle, which is a program, is run.
        frontend: Name of the frontend that reads the file.
        args: Arguments that the recipe gives for it.

    Raises:
        StepError: It can't be loaded.
    """
    made = load_file(path, path.name, frontend, args, path.name)
    name = type(made).__name__
    first = _first(made)
    if hasattr(first, "build_analyzer"):  # CountVectorizer, TfidfVectorizer, HashingVectorizer
        return Draft({_INPUTS: _TEXT}, {_INPUTS: f"{type(first).__name__} takes texts"})
    columns = _selected_columns(first, made)
    if columns:
        inputs: dict[str, object] = dict.fromkeys(columns, _COLUMN)
        hole = "the type of each column: float32, int64, string or bool"
        return Draft({_INPUTS: inputs}, holes={_INPUTS: f"{hole}; {name} names them"})
    width = getattr(made, "n_features_in_", 0)
    inputs = {FEATURES: {"dtype": "float32", "shape": [BATCH, int(width) or 1]}}
    if width:
        return Draft({_INPUTS: inputs}, {_INPUTS: f"{name} was fitted with rows of {width}"})
    hole = f"what {name} takes: the number of its columns, or `text: {{dtype: string, shape: [batch]}}`"
    return Draft({_INPUTS: inputs}, holes={_INPUTS: hole})


def _first(estimator: Any) -> Any:
    """The first step of a Pipeline; the estimator itself, if it is none."""
    steps = getattr(estimator, "steps", None)
    return _first(steps[0][1]) if isinstance(steps, list) and steps else estimator


def _selected_columns(first: Any, whole: Any) -> tuple[str, ...]:
    """Columns of a table that are selected by their names, in order; none if places select them."""
    names = [str(each) for each in getattr(whole, "feature_names_in_", ())]
    chosen = [columns for _, _, columns in getattr(first, "transformers", ())]
    by_name = any(
        isinstance(columns, str)
        or (isinstance(columns, list) and any(isinstance(each, str) for each in columns))
        for columns in chosen
    )
    return tuple(names) if by_name and all(re.search(INPUT_NAME, each) for each in names) else ()
