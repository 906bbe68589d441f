"""ONNX Runtime sessions that run where they were asked to, or say why not."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.params import to_json
from onnxbuild.core.provider import USE_ARENA
from onnxbuild.core.target import CPU, CPU_TARGET, Link, Target
from onnxbuild.onnxkit.frameworks import onnx, onnxruntime
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.loaders.onnx_bundle import session_options
from onnxbuild.onnxkit.model.inspect import dtype_name
from onnxbuild.onnxkit.model.model_files import has_external_weights, load_model, loadable
from onnxbuild.onnxkit.sessions.custom_operators import (
    adopted_libraries,
    register_libraries,
    unknown_operator,
    unknown_operator_error,
)
from onnxbuild.onnxkit.sessions.rpc_client import HostedSession, host_of
from onnxbuild.onnxkit.sessions.settings import STEADY, SessionSettings
from onnxbuild.providers import full_name, named, short_name

_MISSING = re.compile(
    r"Could not find an implementation for (?P<operator>\w+)\(\d+\) node with name '(?P<node>[^']*)'"
)
_RARE = ("bfloat16", "float64", "float16")
"""Types of floats that providers have few kernels for."""


def missing_kernel_fix(said: str, model: str | bytes) -> str:
    """Return the fix where the type is why a kernel is missing; empty where it is not, or nobody can say.

    Args:
        said: The message of the error that a session was refused with.
        model: What the session was asked for: a file, or its content.
    """
    found = _MISSING.search(said)
    if found is None:
        return ""
    operator, name = found["operator"], found["node"]
    for dtype in _types_of(model, operator, name):
        if dtype in _RARE:
            return f"compute in float32, as `return model.float()` does: ONNX Runtime has no {operator} of {dtype} there"
    return ""


def _types_of(model: str | bytes, operator: str, name: str) -> list[str]:
    try:
        proto = (
            onnx.ModelProto.FromString(model)
            if isinstance(model, bytes)
            else load_model(Path(model), weights="left")
        )
        proto = onnx.shape_inference.infer_shapes(proto)
    except (StepError, onnx.shape_inference.InferenceError, ValueError):
        return []
    graph = proto.graph
    types = {each.name: each.data_type for each in graph.initializer}
    for value in (*graph.value_info, *graph.input, *graph.output):
        types[value.name] = value.type.tensor_type.elem_type
    return [
        dtype_name(types[value])
        for node in graph.node
        if node.op_type == operator and node.name == name
        for value in node.input
        if types.get(value)
    ]


def add_plugin(
    options: onnxruntime.SessionOptions, target: Target, library: Path, where: str
) -> str:
    """Add a plug-in's provider, on all its devices, to a session's options.

    Args:
        target: Its one link says which provider, unless its name is the target's own and the
            library holds but one.
        where: `recipe:step`, for messages.

    Returns: The provider's full name.

    Raises:
        StepError: The library can't be loaded, holds no such provider, or the provider finds no
            device.
    """
    if not hasattr(onnxruntime, "register_execution_provider_library"):
        raise StepError(
            f"ONNX Runtime {onnxruntime.__version__} takes no plug-ins",
            where=where,
            fix="pip install --upgrade onnxruntime-gpu (plug-ins came with 1.23)",
        )

    def refused(error: BaseException) -> StepError:
        said = message_of(error).partition("\n")[0] or type(error).__name__
        return StepError(
            f"ONNX Runtime refuses the plug-in {library.name}: {said}",
            where=where,
            fix="see that it was built for this version of ONNX Runtime, and `ldd` finds all it needs",
        )

    with external_code(refused):
        offered = _register(library)
    (link,) = target.chain
    name = full_name(link.provider)
    if name not in offered and link.provider == target.name and len(offered) == 1:
        (name,) = offered
    if name not in offered:
        raise StepError(
            f"the plug-in {library.name} has no device of a provider '{name}'; it has "
            f"{', '.join(offered) or 'none at all'}",
            where=where,
            fix=f"write `provider: {offered[0]}`" if offered else "see that its device is there",
        )
    devices = [each for each in onnxruntime.get_ep_devices() if each.ep_name == name]
    options.add_provider_for_devices(devices, dict(link.options))
    return name


@cache
def _register(library: Path) -> tuple[str, ...]:
    """Full names of the providers that a library brings; a process loads it once."""
    before = {each.ep_name for each in onnxruntime.get_ep_devices()}
    onnxruntime.register_execution_provider_library(str(library), str(library))
    after = [each.ep_name for each in onnxruntime.get_ep_devices()]
    return tuple(dict.fromkeys(name for name in after if name not in before))


_NOISE = re.compile(
    r"^\[ONNXRuntimeError\] : \d+ : \w+ : (Non-zero status code returned while )?"
    r"|Load model from .+?/model\.onnx failed: ?(This is an invalid model\. )?(Fatal error: |Error: )?"
    r"|Status Message: (?=/)|/onnxruntime_src/\S+:\d+ (.*\) )?"
)

REFUSED = "ONNX Runtime refuses the model"
"""First words of the error of a model that can't be opened."""

RECORD_ASSIGNMENT = "session.record_ep_graph_assignment_info"
"""The entry that makes a session remember which nodes went where; see placement."""

_LOG_FATAL = 4
"""ONNX Runtime's severities: 0 verbose ... 4 fatal; what matters is raised."""


def open_session(
    path: Path,
    *,
    target: Target = CPU_TARGET,
    library: Path | None = None,
    threads: int = 1,
    optimize: bool = True,
    settings: SessionSettings | None = None,
    profile: Path | None = None,
    lean: bool = False,
    where: str = "",
) -> onnxruntime.InferenceSession:
    """Open a model on a target, all of whose providers must load.

    In another environment, if the target has one: what comes back stands for the session there.

    Args:
        path: A model's file, or the folder that holds MODEL_FILE.
        target: Where it is to run.
        library: A plug-in's shared library; None for providers that are built in.
        threads: Threads within an operator; 1 makes sums come out the same everywhere, 0 leaves
            the choice to ONNX Runtime.
        optimize: Whether the session fuses and folds the graph for this host.
        settings: All of that and more, as a recipe's `session` has it; `threads` and `optimize`
            don't count then.
        profile: ONNX Runtime writes its profile to this path, with a time and `.json` after it.
        lean: Do without repacked weights, a copy of all of them, if they are external:
            for fp32 models and few runs. (In few bits, kernels depend on it.)
        where: `recipe:step`, for messages.

    Raises:
        StepError: A provider is not in this ONNX Runtime, did not load, or the model is refused.
    """
    asked = asked_for(
        path,
        target=target,
        library=library,
        settings=settings or _steady(threads, optimize=optimize),
        profile=profile,
        lean=lean,
        where=where,
    )
    if target.environment is None:
        return open_here(asked)
    return open_there(target.environment.interpreter, asked)


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """Request for a session, in a form that can be sent to another process.

    Attributes:
        model: Its path, or what it holds where its weights are elsewhere.
        target: Whose providers must load.
        library: A plug-in's path; None for providers that are built in.
        settings: The session's.
        profile: Where ONNX Runtime writes its profile; None for nowhere.
        entries: More of its config: key -> value.
        where: `recipe:step`, for messages.
        operators: Paths of libraries of custom operators.
    """

    model: str | bytes
    target: Target
    library: str | None
    settings: SessionSettings
    profile: str | None
    entries: Mapping[str, str]
    where: str
    operators: tuple[str, ...] = ()


def asked_for(
    path: Path,
    *,
    target: Target,
    library: Path | None,
    settings: SessionSettings,
    profile: Path | None = None,
    lean: bool = False,
    where: str = "",
) -> SessionRequest:
    """Describe a session to be opened; arguments as for `open_session`.

    Raises:
        StepError: The model can't be read.
    """
    entries: dict[str, str] = {}
    model = loadable(path, entries)
    if lean and has_external_weights(path):
        entries["session.disable_prepacking"] = "1"
    return SessionRequest(
        model=model,
        target=replace(target, environment=None),
        library=None if library is None else str(library),
        settings=settings,
        profile=None if profile is None else str(profile),
        entries=entries,
        where=where,
        operators=adopted_libraries(),
    )


def open_there(interpreter: str, asked: SessionRequest) -> HostedSession:
    """Open a session under another interpreter; see `open_session` for the errors."""
    return HostedSession(host_of(interpreter, asked.where).keep(open_here, asked))


def open_here(asked: SessionRequest) -> onnxruntime.InferenceSession:
    """Open a session in this process; see `open_session` for the errors."""
    target, where = asked.target, asked.where
    options = _session_options(asked.settings, asked.profile)
    if asked.library is None:
        _check_packaged(target, where)
        _preload(target)
        chain = [(full_name(link.provider), _own_options(link, options)) for link in target.chain]
        wanted = [name for name, _ in chain]
    else:
        chain, wanted = None, [add_plugin(options, target, Path(asked.library), where)]
    for key, value in asked.entries.items():
        options.add_session_config_entry(key, value)
    register_libraries(options, asked.operators, where)
    try:
        session = onnxruntime.InferenceSession(
            asked.model, options, providers=chain, enable_fallback=0
        )
    except session_errors() as error:
        if operator := unknown_operator(str(error)):
            raise unknown_operator_error(operator, where) from error
        raise StepError(
            f"{REFUSED} on {', '.join(wanted)}: {first_line(error)}",
            where=where,
            fix=missing_kernel_fix(str(error), asked.model)
            or "run `onnxbuild inspect` on the model; a newer onnxruntime may know its operators",
        ) from error
    found = session.get_providers()
    absent = [name for name in wanted if name not in found]
    if absent:
        raise StepError(
            f"execution provider '{short_name(absent[0])}' ({absent[0]}) did not load; "
            f"ONNX Runtime fell back to {', '.join(found)}",
            where=where,
            fix="run `onnxbuild doctor` to see which library is missing, or write "
            "`providers: [cpu]`",
        )
    return session


def _check_packaged(target: Target, where: str) -> None:
    available = onnxruntime.get_available_providers()
    for link in target.chain:
        name = full_name(link.provider)
        if name not in available:
            raise StepError(
                f"execution provider '{link.provider}' ({name}) is not in the installed "
                f"ONNX Runtime {onnxruntime.__version__}, which has {', '.join(available)}",
                where=where,
                fix=f"install an ONNX Runtime with {name}, or write `providers: [cpu]`",
            )


def _own_options(link: Link, options: onnxruntime.SessionOptions) -> dict[str, str]:
    """A provider's options; the CPU's arena is a session's option in Python."""
    own = dict(link.options)
    if link.provider == CPU and USE_ARENA in own:
        options.enable_cpu_mem_arena = own.pop(USE_ARENA) == "1"
    return own


def _preload(target: Target) -> None:
    """Load the libraries of the target's providers from their wheels, where they are installed as such."""
    chain = [named(link.provider) for link in target.chain]
    if (
        any(provider.preload_dlls for provider in chain)
        and importlib.util.find_spec("nvidia") is not None
        and hasattr(onnxruntime, "preload_dlls")
    ):
        with redirect_stdout(StringIO()):  # it prints what it does not find
            onnxruntime.preload_dlls()
    for pattern in dict.fromkeys(
        each for provider in chain for each in provider.preloaded_libraries
    ):
        package, _, libraries = pattern.partition("/")
        found = importlib.util.find_spec(package)
        for folder in () if found is None else found.submodule_search_locations or ():
            for library in sorted(Path(folder).glob(libraries)):
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def check_loads(path: Path, where: str) -> None:
    """Check that ONNX Runtime takes a model, as a user's session would.

    External weights are mapped and left alone: a session that folds and
    repacks them takes up to two copies more, and `validate` opens one anyway.

    Raises:
        StepError: It is refused.
    """
    phase("loading it into ONNX Runtime")
    large = has_external_weights(path)
    open_session(path, optimize=not large, lean=large, where=where)


def session_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions that ONNX Runtime raises when it opens or runs a model."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    return (
        state.EPFail, state.EngineError, state.Fail, state.InvalidArgument, state.InvalidGraph,
        state.InvalidProtobuf, state.NoModel, state.NoSuchFile, state.NotImplemented,
        state.RuntimeException, RuntimeError, ValueError,
    )  # fmt: skip


def first_line(error: BaseException) -> str:
    """An exception's message up to its first line break, without ONNX Runtime's own source."""
    lines = str(error).strip().splitlines()
    return _NOISE.sub("", lines[0]).strip() if lines else type(error).__name__


def _steady(threads: int, *, optimize: bool) -> SessionSettings:
    level = STEADY.graph_optimization if optimize else "disable"
    return replace(STEADY, intra_op_threads=threads, graph_optimization=level)


def _session_options(settings: SessionSettings, profile: str | None) -> onnxruntime.SessionOptions:
    """Return the options that a bundle's load.py makes, with a log level and a profile."""
    options: onnxruntime.SessionOptions = session_options(to_json(settings))
    options.log_severity_level = _LOG_FATAL
    if hasattr(onnxruntime.InferenceSession, "get_provider_graph_assignment_info"):
        options.add_session_config_entry(RECORD_ASSIGNMENT, "1")
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = profile
    return options
