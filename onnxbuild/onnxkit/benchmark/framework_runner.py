"""Models of TensorFlow and JAX as the baseline of a benchmark: a process of their environment, which times its own calls."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.benchmark.baseline import Original
from onnxbuild.onnxkit.benchmark.candidate import Bind, LoadCost, LoadsElsewhere, cost_here
from onnxbuild.onnxkit.benchmark.remote_call import HostedCall
from onnxbuild.onnxkit.converters.child import Refused, Request
from onnxbuild.onnxkit.converters.frameworks import FRAMEWORKS
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.sessions.rpc_client import HostedError, SessionHost, host_of

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
        original: The model.
        form: Name of the function there that opens it.
        library: The framework's module.
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
