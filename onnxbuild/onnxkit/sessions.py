"""ONNX Runtime sessions that run where they were asked to, or say why not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import PROVIDERS
from onnxbuild.onnxkit.bundle_loader import session_options
from onnxbuild.onnxkit.model_files import model_path
from onnxbuild.onnxkit.session_settings import STEADY, SessionSettings

if TYPE_CHECKING:
    import onnxruntime

_NOISE = re.compile(
    r"^\[ONNXRuntimeError\] : \d+ : \w+ : (Non-zero status code returned while )?"
    r"|Status Message: (?=/)|/onnxruntime_src/\S+:\d+ (.*\) )?"
)

_LOG_FATAL = 4
"""ONNX Runtime's severities: 0 verbose ... 4 fatal; what matters is raised."""


def open_session(
    path: Path,
    *,
    provider: str = "cpu",
    options: Mapping[str, str] | None = None,
    threads: int = 1,
    optimize: bool = True,
    settings: SessionSettings | None = None,
    profile: Path | None = None,
    where: str = "",
) -> onnxruntime.InferenceSession:
    """Open a model on one execution provider.

    Args:
        path: A model's file, or the folder that holds MODEL_FILE.
        provider: Short name, a key of PROVIDERS.
        options: The provider's own options.
        threads: Threads within an operator; 1 makes sums come out the same everywhere, 0 leaves
            the choice to ONNX Runtime.
        optimize: Whether the session fuses and folds the graph for this host.
        settings: All of that and more, as a recipe's `session` has it; `threads` and `optimize`
            don't count then.
        profile: ONNX Runtime writes its profile to this path, with a time and `.json` after it.
        where: `recipe:step`, for messages.

    Raises:
        StepError: The provider is not in this ONNX Runtime, did not load, or the model is refused.
    """
    import onnxruntime

    wanted = PROVIDERS[provider]
    available = onnxruntime.get_available_providers()
    if wanted not in available:
        raise StepError(
            f"execution provider '{provider}' ({wanted}) is not in the installed ONNX Runtime "
            f"{onnxruntime.__version__}, which has {', '.join(available)}",
            where=where,
            fix=f"install an ONNX Runtime with {wanted}, or write `providers: [cpu]`",
        )
    try:
        session = onnxruntime.InferenceSession(
            str(model_path(path)),
            _session_options(settings or _steady(threads, optimize=optimize), profile),
            providers=[(wanted, dict(options or {}))],
            enable_fallback=0,
        )
    except session_errors() as error:
        raise StepError(
            f"ONNX Runtime refuses the model on {wanted}: {first_line(error)}",
            where=where,
            fix="run `onnxbuild inspect` on the model; a newer onnxruntime may know its operators",
        ) from error
    found = session.get_providers()
    if found[0] != wanted:
        raise StepError(
            f"execution provider '{provider}' ({wanted}) did not load; "
            f"ONNX Runtime fell back to {', '.join(found)}",
            where=where,
            fix="run `onnxbuild doctor` to see which library is missing, or write "
            "`providers: [cpu]`",
        )
    return session


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
    options: onnxruntime.SessionOptions = session_options(to_json(settings))
    options.log_severity_level = _LOG_FATAL
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    return options
