"""The frameworks that a benchmark's baseline runs in, by name; those of plug-ins by where they are."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.benchmark.baseline import (
    INPUT,
    KERAS,
    PYTORCH,
    Baseline,
    BaselineRunner,
    Original,
)
from onnxbuild.onnxkit.benchmark.candidate import Bind, LoadCost, LoadsElsewhere, cost_here
from onnxbuild.onnxkit.benchmark.runners import HostedCall, onnx_runtime, pytorch
from onnxbuild.onnxkit.converters.child import Refused, Request
from onnxbuild.onnxkit.converters.frameworks import FRAMEWORKS
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.user_code import call_user
from onnxbuild.onnxkit.estimators.made import LIGHTGBM, SKLEARN, XGBOOST, make_estimator
from onnxbuild.onnxkit.estimators.outputs import EstimatorOutput, as_rows, named_outputs
from onnxbuild.onnxkit.providers.open_on_target import library_of, usable
from onnxbuild.onnxkit.sessions.rpc_client import HostedError, SessionHost, host_of
from onnxbuild.onnxkit.sessions.settings import SessionSettings

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


_SETTINGS: Mapping[str, str] = {
    "CUDA_VISIBLE_DEVICES": "-1",  # as the reference, and as variants on the CPU
    "JAX_PLATFORMS": "cpu",
    "TF_CPP_MIN_LOG_LEVEL": "1",
    "TF_USE_LEGACY_KERAS": "0",
    "KERAS_BACKEND": "tensorflow",
}
_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


def framework_runner(form: str) -> Callable[[Original], Callable[[], Bind]]:
    """Return the opener of a form of models.

    Args:
        form: `saved_model`, `tflite` or `jax`.
    """
    framework = FRAMEWORKS[form]

    def opener(original: Original) -> Callable[[], Bind]:
        request = {
            **framework.request(original.context, original.params),
            "threads": original.threads,
        }
        return _Hosted(original, form, framework.package, request)

    return opener


class _Hosted(LoadsElsewhere):
    """A model in a process of its framework's environment.

    Args:
        form: Name of the function there that opens it.
        request: JSON that the function takes.
    """

    def __init__(self, original: Original, form: str, library: str, request: Request) -> None:
        assert original.environment is not None
        self._where = original.context.where
        self._form = form
        self._request = request
        xla = {"XLA_FLAGS": _ONE_THREAD} if original.threads == 1 else {}
        variables = {**_SETTINGS, **xla, **request.get("env", {})}
        self._host = (original.environment.interpreter, self._where, library, variables)
        self._theirs = {ours: name for name, ours in original.params.rename.items()}

    def __call__(self) -> Bind:
        """See LoadsElsewhere."""
        host = host_of(*self._host)
        opened = self._said(host.keep, _opened, self._form, self._request)

        def bind(feeds: Feeds) -> Callable[[], object]:
            return HostedCall(self._said(host.keep, _bound, opened, self._named(feeds)))

        return bind

    def cost(self, feeds: Mapping[str, Feeds]) -> LoadCost:
        """See LoadsElsewhere."""
        host = SessionHost(*self._host)
        named = {point: self._named(each) for point, each in feeds.items()}
        try:
            found: LoadCost = self._said(host.call, _cost, self._form, self._request, named)
        finally:
            host.end()
        return found

    def _named(self, feeds: Feeds) -> dict[str, Any]:
        """Feeds by the names that the model itself has."""
        return {self._theirs.get(name, name): array for name, array in feeds.items()}

    def _said(self, call: Callable[..., Any], *arguments: object) -> Any:
        try:
            return call(*arguments, self._where)
        except HostedError as error:
            raise StepError(
                f"the model's framework fails as the benchmark's baseline: {error}",
                where=self._where,
                fix="see the step's log; `benchmark: {baseline: false}` measures without it",
            ) from error


# --- done in the framework's environment ---------------------------------------------------------------


def _opened(form: str, request: Request, where: str) -> Bind:
    try:
        found: Bind = FRAMEWORKS[form].open(request)
    except Refused as error:
        raise StepError(error.what, where=error.where or where, fix=error.fix) from error
    return found


def _bound(bind: Bind, feeds: Feeds, where: str) -> Callable[[], object]:
    try:
        call = bind(feeds)
        call()
    except Refused as error:
        raise StepError(error.what, where=error.where or where, fix=error.fix) from error
    return call


def _cost(form: str, request: Request, feeds: Mapping[str, Feeds], where: str) -> LoadCost:
    def load() -> Bind:
        bind = _opened(form, request, where)
        return lambda each: _bound(bind, each, where)

    return cost_here(load, feeds)


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
        runner: Its runner; None for no baseline.
    """
    if runner is None:
        return {"absent": baseline.absent}
    return {"name": runner.name, "title": runner.title, "how": runner.how}
