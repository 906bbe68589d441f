"""ONNX Runtime sessions that run where they were asked to, or say why not."""

from __future__ import annotations

import ctypes
import importlib.util
import re
from contextlib import redirect_stdout
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.provider_options import USE_ARENA
from onnxbuild.core.providers import CPU, short_name
from onnxbuild.core.target import CPU_TARGET, Link, Target
from onnxbuild.onnxkit.bundle_loader import session_options
from onnxbuild.onnxkit.model_files import (
    WEIGHTS_FILE,
    has_weights_beside,
    load_model,
    model_path,
    name_weights,
)
from onnxbuild.onnxkit.plugins import add_plugin
from onnxbuild.onnxkit.session_settings import STEADY, SessionSettings

if TYPE_CHECKING:
    import onnxruntime

_NOISE = re.compile(
    r"^\[ONNXRuntimeError\] : \d+ : \w+ : (Non-zero status code returned while )?"
    r"|Status Message: (?=/)|/onnxruntime_src/\S+:\d+ (.*\) )?"
)

RECORD_ASSIGNMENT = "session.record_ep_graph_assignment_info"
"""The entry that makes a session remember which nodes went where; see placement."""

_LOG_FATAL = 4
"""ONNX Runtime's severities: 0 verbose ... 4 fatal; what matters is raised."""

_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
"""onnxruntime_session_options_config_keys.h: where external data of a model in memory lies."""


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
        lean: Do without repacked weights, a copy of all of them, where they lie beside the graph:
            for fp32 models and few runs. (In few bits, kernels depend on it.)
        where: `recipe:step`, for messages.

    Raises:
        StepError: A provider is not in this ONNX Runtime, did not load, or the model is refused.
    """
    import onnxruntime

    options = _session_options(settings or _steady(threads, optimize=optimize), profile)
    if library is None:
        _check_packaged(target, where)
        _preload(target)
        chain = [(link.full_name, _own_options(link, options)) for link in target.chain]
        wanted = [name for name, _ in chain]
    else:
        chain, wanted = None, [add_plugin(options, target, library, where)]
    if lean and has_weights_beside(path):
        options.add_session_config_entry("session.disable_prepacking", "1")
    try:
        session = onnxruntime.InferenceSession(
            loadable(path, options), options, providers=chain, enable_fallback=0
        )
    except session_errors() as error:
        raise StepError(
            f"ONNX Runtime refuses the model on {', '.join(wanted)}: {first_line(error)}",
            where=where,
            fix="run `onnxbuild inspect` on the model; a newer onnxruntime may know its operators",
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
    import onnxruntime

    available = onnxruntime.get_available_providers()
    for link in target.chain:
        if link.full_name not in available:
            raise StepError(
                f"execution provider '{link.provider}' ({link.full_name}) is not in the installed "
                f"ONNX Runtime {onnxruntime.__version__}, which has {', '.join(available)}",
                where=where,
                fix=f"install an ONNX Runtime with {link.full_name}, or write `providers: [cpu]`",
            )


def _own_options(link: Link, options: onnxruntime.SessionOptions) -> dict[str, str]:
    """A provider's options; the CPU's arena is a session's option in Python."""
    own = dict(link.options)
    if link.provider == CPU and USE_ARENA in own:
        options.enable_cpu_mem_arena = own.pop(USE_ARENA) == "1"
    return own


def _preload(target: Target) -> None:
    """Load CUDA's and TensorRT's libraries from their wheels, where they are installed as such."""
    import onnxruntime

    if not {"cuda", "tensorrt"} & {link.provider for link in target.chain}:
        return
    if importlib.util.find_spec("nvidia") is not None and hasattr(onnxruntime, "preload_dlls"):
        with redirect_stdout(StringIO()):  # it prints what it does not find
            onnxruntime.preload_dlls()
    tensorrt = importlib.util.find_spec("tensorrt_libs")
    for folder in () if tensorrt is None else tensorrt.submodule_search_locations or ():
        for library in sorted(Path(folder).glob("libnv*.so.10")):
            ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)


def check_loads(path: Path, where: str) -> None:
    """See that ONNX Runtime takes a model, as a user's session would.

    Where weights lie beside the graph, they are mapped and left alone: a session that folds and
    repacks them takes up to two copies more, and `validate` opens one anyway.

    Raises:
        StepError: It is refused.
    """
    large = has_weights_beside(path)
    open_session(path, optimize=not large, lean=large, where=where)


def loadable(path: Path, options: onnxruntime.SessionOptions) -> str | bytes:
    """What an InferenceSession takes: the model's path; its graph where a link leads to its weights.

    ONNX Runtime refuses weights that lie elsewhere than the model's file, and a step's inputs are
    links into the store. Told the weights' real folder and name, it maps them from there.

    Args:
        path: A model's file, or the folder that holds MODEL_FILE.
        options: Of the session; get the folder.

    Raises:
        StepError: The model can't be read.
    """
    file = model_path(path)
    weights = file.parent / WEIGHTS_FILE
    if not weights.is_symlink():
        return str(file)
    real = weights.resolve()
    model = load_model(file, weights="left")
    name_weights(model, real.name)
    options.add_session_config_entry(_WEIGHTS_FOLDER, str(real.parent))
    content: bytes = model.SerializeToString()
    return content


def session_errors() -> tuple[type[Exception], ...]:
    """All that ONNX Runtime raises when it opens or runs a model."""
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


def _session_options(
    settings: SessionSettings, profile: Path | None
) -> onnxruntime.SessionOptions:
    """What a bundle's load.py makes of the settings: what is measured is what is delivered."""
    import onnxruntime

    options: onnxruntime.SessionOptions = session_options(to_json(settings))
    options.log_severity_level = _LOG_FATAL
    if hasattr(onnxruntime.InferenceSession, "get_provider_graph_assignment_info"):
        options.add_session_config_entry(RECORD_ASSIGNMENT, "1")
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    return options
