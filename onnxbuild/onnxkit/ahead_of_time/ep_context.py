"""Models whose nodes a provider has compiled: ONNX with EPContext nodes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.ahead_of_time.host_optimized import with_own_weights
from onnxbuild.onnxkit.sessions.custom_operators import register_libraries
from onnxbuild.onnxkit.sessions.open import first_line, session_errors
from onnxbuild.providers import full_name, named

_NOTHING_COMPILED = "Unable to compile any nodes"
_LOG_FATAL = 4


def compile_model(
    source: Path,
    target: Path,
    scratch: Path,
    *,
    provider: str,
    options: Mapping[str, str],
    embed: bool,
    where: str,
) -> dict[str, int]:
    """Write MODEL_FILE with EPContext nodes; the compiled nodes are in it, or in files next to it.

    Args:
        source: Holds the portable model.
        target: Is there.
        scratch: Empty.
        provider: Short name of the provider that compiles.
        options: Its options.
        embed: Whether what was compiled goes into the model.
        where: `recipe:step`, for messages.

    Returns: Operator type -> how many nodes there are of it afterwards.

    Raises:
        StepError: The provider compiles nothing, is not there, refuses the model, or can't load
            what it has made of it.
    """
    import onnxruntime

    refuse_provider(provider, where)
    wanted = full_name(provider)
    available = onnxruntime.get_available_providers()
    if wanted not in available:
        raise StepError(
            f"execution provider '{provider}' ({wanted}) is not in the installed ONNX Runtime "
            f"{onnxruntime.__version__}, which has {', '.join(available)}",
            where=where,
            fix=f"install an ONNX Runtime with {wanted}, or remove `ahead_of_time.compiled`",
        )
    if not hasattr(onnxruntime, "ModelCompiler"):
        raise StepError(
            f"ONNX Runtime {onnxruntime.__version__} has no ModelCompiler",
            where=where,
            fix="install 1.23 or newer",
        )
    session = onnxruntime.SessionOptions()
    session.log_severity_level = _LOG_FATAL
    register_libraries(session, where=where)
    try:
        session.add_provider(wanted, dict(options))
    except session_errors() as error:
        raise StepError(
            f"execution provider '{provider}' ({wanted}) did not load: {first_line(error)}",
            where=where,
            fix="run `onnxbuild doctor` to see which library is missing, or remove "
            "`ahead_of_time.compiled`",
        ) from error
    try:
        compiler = onnxruntime.ModelCompiler(
            session,
            str(with_own_weights(source, scratch) / MODEL_FILE),
            embed_compiled_data_into_model=embed,
            flags=onnxruntime.OrtCompileApiFlags.ERROR_IF_NO_NODES_COMPILED,
        )
        compiler.compile_to_file(str(target / MODEL_FILE))
    except session_errors() as error:
        if _NOTHING_COMPILED in str(error):
            raise StepError(
                f"execution provider '{provider}' ({wanted}) compiled no node of this model",
                where=where,
                fix="see `onnxbuild log` for the operators that it lacks, or remove "
                "`ahead_of_time.compiled`",
            ) from error
        raise StepError(
            f"{wanted} can't compile the model: {first_line(error)}",
            where=where,
            fix="remove `ahead_of_time.compiled`, or give the provider other options",
        ) from error
    _check_loads(target, wanted, options, where)
    return _operators(target)


def _check_loads(folder: Path, provider: str, options: Mapping[str, str], where: str) -> None:
    """Open what was compiled: a provider may compile what it can't load again.

    onnxruntime-openvino 1.24.1 does so on a CPU: `EP_FAIL : Unhandled exception type: 1`.
    """
    import onnxruntime

    session = onnxruntime.SessionOptions()
    session.log_severity_level = _LOG_FATAL
    register_libraries(session, where=where)
    try:
        onnxruntime.InferenceSession(
            str(folder / MODEL_FILE), session, providers=[(provider, dict(options))]
        )
    except session_errors() as error:
        raise StepError(
            f"{provider} compiled the model and can't load what it made: {first_line(error)}",
            where=where,
            fix="take another version of ONNX Runtime for this provider, or remove "
            "`ahead_of_time.compiled`",
        ) from error


def refuse_provider(provider: str, where: str) -> None:
    """Refuse a provider that has nothing to compile with.

    Raises:
        StepError: It has not.
    """
    reason = named(provider).no_ep_context
    if reason:
        raise StepError(
            f"execution provider '{provider}' has no compiled models (EPContext): {reason}",
            where=where,
            fix="name one that compiles, such as openvino, or write `ahead_of_time: "
            "{optimized: {}}`",
        )


def _operators(folder: Path) -> dict[str, int]:
    from collections import Counter

    import onnx

    model = onnx.load(str(folder / MODEL_FILE), load_external_data=False)
    return dict(sorted(Counter(node.op_type for node in model.graph.node).items()))
