"""Load an estimator from a file: .skops, a pickle that the recipe allows, a model of XGBoost or LightGBM."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.onnxkit.estimators.outlines import SKOPS

TRUSTED = "trusted"
"""Key in Entrypoint.args of a .skops file: names of types that may be loaded."""


def load_file(
    path: Path, shown: str, frontend: str, args: Mapping[str, object], where: str
) -> Any:
    """The estimator in a file.

    Args:
        path: The file.
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
