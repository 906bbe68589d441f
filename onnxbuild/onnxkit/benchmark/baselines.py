"""The frameworks that a benchmark's baseline runs in, by name; those of plug-ins by where they are."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.benchmark.baseline import (
    INPUT,
    KERAS,
    PYTORCH,
    Baseline,
    BaselineRunner,
    Original,
)
from onnxbuild.onnxkit.benchmark.candidate import Bind
from onnxbuild.onnxkit.benchmark.estimator_runner import estimator_runner
from onnxbuild.onnxkit.benchmark.framework_runner import framework_runner
from onnxbuild.onnxkit.benchmark.runners import onnx_runtime, pytorch
from onnxbuild.onnxkit.estimators.made import LIGHTGBM, SKLEARN, XGBOOST
from onnxbuild.onnxkit.providers.open_on_target import library_of, usable
from onnxbuild.onnxkit.sessions.settings import SessionSettings

_ONE_CALL = (
    "one call of the method that gives all outputs (`predict_proba` where probabilities are among "
    "them, else `predict`, `decision_function` or `transform`), on the rows as it takes them"
)


def _eager(original: Original) -> Callable[[], Bind]:
    return pytorch(original.context, original.model, original.inputs, threads=original.threads)


def _as_given(original: Original) -> Callable[[], Bind]:
    context = original.context
    target = context.params.target
    return onnx_runtime(
        context.input(INPUT),
        target=usable(context, target),
        library=library_of(context, target),
        settings=SessionSettings().threaded(original.threads),
        where=context.where,
    )


def _by_name(*runners: BaselineRunner) -> dict[str, BaselineRunner]:
    return {each.name: each for each in runners}


RUNNERS = _by_name(
    BaselineRunner(
        PYTORCH, "PyTorch", "eager, in inference mode, from tensors to tensors", _eager
    ),
    BaselineRunner(
        KERAS,
        "Keras",
        "the model called on Keras' torch backend, in inference mode, from tensors to tensors: "
        "`predict` takes longer for small models",
        _eager,
    ),
    BaselineRunner("scikit-learn", "scikit-learn", _ONE_CALL, estimator_runner(SKLEARN)),
    BaselineRunner("xgboost", "XGBoost", _ONE_CALL, estimator_runner(XGBOOST)),
    BaselineRunner("lightgbm", "LightGBM", _ONE_CALL, estimator_runner(LIGHTGBM)),
    BaselineRunner(
        "tensorflow",
        "TensorFlow",
        "one call of the signature, from tensors to numpy arrays, in a process of its environment",
        framework_runner("saved_model"),
    ),
    BaselineRunner(
        "tensorflow-lite",
        "TensorFlow Lite",
        "its interpreter with its default delegate (XNNPACK), from numpy arrays to numpy arrays, in a "
        "process of its environment",
        framework_runner("tflite"),
    ),
    BaselineRunner(
        "jax",
        "JAX",
        "the function compiled by `jax.jit`, from arrays on the device until its outputs are ready, in a "
        "process of its environment",
        framework_runner("jax"),
    ),
    BaselineRunner(
        "onnx-as-given",
        "ONNX as given",
        "the model as it was given, in ONNX Runtime with the options that a session has by default",
        _as_given,
    ),
)
"""Name -> runner, of all baselines of this package."""


def runner_of(baseline: Baseline, where: str) -> BaselineRunner:
    """Return the runner that a baseline names.

    Args:
        baseline: One that has a runner.
        where: `recipe:step`, for messages.

    Raises:
        StepError: A plug-in has no such runner.
    """
    if baseline.runner in RUNNERS:
        return RUNNERS[baseline.runner]
    module, _, name = baseline.runner.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        found = error
    if not isinstance(found, BaselineRunner):
        raise StepError(
            f"the frontend's baseline is '{baseline.runner}', which is no BaselineRunner: {found}",
            where=where,
            fix="`benchmark: {baseline: false}` measures without it; see docs/plugins.md",
        )
    return found


def described(baseline: Baseline, runner: BaselineRunner | None) -> dict[str, str]:
    """Return what a report says of its baseline: `name`, `title` and `how`, or `absent`, the reason.

    Args:
        baseline: The step's parameter.
        runner: Its runner; None for no baseline.
    """
    if runner is None:
        return {"absent": baseline.absent}
    return {"name": runner.name, "title": runner.title, "how": runner.how}
