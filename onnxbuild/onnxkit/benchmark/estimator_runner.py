"""Estimators of scikit-learn, XGBoost and LightGBM as the baseline of a benchmark: their own methods."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from onnxbuild.onnxkit.benchmark.baseline import Original
from onnxbuild.onnxkit.benchmark.candidate import Bind
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import call_user
from onnxbuild.onnxkit.estimators.made import make_estimator
from onnxbuild.onnxkit.estimators.outputs import EstimatorOutput, as_rows, named_outputs

_OF_ITS_OWN = object()
_EVERY_CORE = (None, 0, -1)
"""Values of `n_jobs` by which XGBoost and LightGBM take all cores."""


def estimator_runner(frontend: str) -> Callable[[Original], Callable[[], Bind]]:
    """Return the opener of a family's estimators, which imports its library.

    Args:
        frontend: `sklearn`, `xgboost` or `lightgbm`.
    """

    def opener(original: Original) -> Callable[[], Bind]:
        context, params = original.context, original.params
        importlib.import_module(frontend)  # before it is timed: a module has its family's name

        def load() -> Bind:
            estimator = make_estimator(context, original.model, frontend, original.threads)
            _limit_threads(estimator, original.threads)
            every = named_outputs(estimator, params.outputs, context.where)
            method = called_method(
                [each for each in every if each.name in (params.outputs or (each.name,))]
            )

            def bind(feeds: Feeds) -> Callable[[], object]:
                rows = as_rows(estimator, original.inputs, feeds, context.where)
                call = getattr(estimator, method)

                def run_once() -> object:
                    return call(rows)

                target = f"{type(estimator).__name__}.{method}"
                call_user(run_once, target, context.where, owner="the estimator's")
                return run_once

            return bind

        return load

    return opener


def called_method(outputs: Sequence[EstimatorOutput]) -> str:
    """Return the one method that gives all outputs.

    Labels follow from probabilities, scores and distances at no cost, so `predict` is called only if
    it is all that is wanted.
    """
    methods = [each.method for each in outputs]
    return next((each for each in methods if each != "predict"), "predict")


def _limit_threads(estimator: Any, threads: int) -> None:
    """Give native code this many threads; an estimator that the user gave a number keeps it."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(threads)
    own = getattr(estimator, "n_jobs", _OF_ITS_OWN)
    if own not in _EVERY_CORE:
        return
    if hasattr(estimator, "get_booster"):  # XGBoost's
        estimator.get_booster().set_param({"nthread": threads})
    elif hasattr(estimator, "booster_"):  # LightGBM's
        estimator.set_params(n_jobs=threads)
