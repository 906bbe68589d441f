"""Models that a provider prepared: the graph that the CPU runs, EPContext nodes, TensorRT's engines and timing cache."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from onnxbuild.core.axis import Dimension, shape_at
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.core.target import Link, Target
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.frameworks import onnx, onnxruntime
from onnxbuild.onnxkit.loaders.onnx_bundle import session_options
from onnxbuild.onnxkit.model.graphs import all_nodes
from onnxbuild.onnxkit.model.model_files import EXTERNAL_FROM_BYTES, WEIGHTS_FILE, file_bytes
from onnxbuild.onnxkit.sessions.custom_operators import register_libraries
from onnxbuild.onnxkit.sessions.open import first_line, open_session, session_errors
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings
from onnxbuild.providers import full_name, named

_LAYOUT_DOMAIN = "com.microsoft.nchwc"
"""Convolutions whose channels are blocked as this CPU's vectors are wide."""

_LEAST_EXTERNAL_BYTES = 1024
_LOG_FATAL = 4


def save_host_graph(
    source: Path, target: Path, scratch: Path, settings: SessionSettings, where: str
) -> None:
    """Write MODEL_FILE as the CPU provider has it once it is loaded; large weights go into a file next to it.

    Args:
        source: Holds the portable model.
        settings: Of the session that optimizes.

    Raises:
        StepError: ONNX Runtime refuses the model.
    """
    options = session_options(to_json(settings))
    options.log_severity_level = _LOG_FATAL
    options.optimized_model_filepath = str(target / MODEL_FILE)
    if (source / WEIGHTS_FILE).exists() or file_bytes(source) > EXTERNAL_FROM_BYTES:
        prefix = "session.optimized_model_external_initializers"
        options.add_session_config_entry(f"{prefix}_file_name", WEIGHTS_FILE)
        options.add_session_config_entry(f"{prefix}_min_size_in_bytes", str(_LEAST_EXTERNAL_BYTES))
    register_libraries(options, where=where)
    model = with_own_weights(source, scratch) / MODEL_FILE
    try:
        onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except session_errors() as error:
        raise StepError(
            f"ONNX Runtime refuses the model: {first_line(error)}",
            where=where,
            fix="run `onnxbuild inspect` on the model; a newer onnxruntime may know its operators",
        ) from error


def with_own_weights(source: Path, scratch: Path) -> Path:
    """A folder of the model whose weights, if they are in a file next to it, are no link: ORT takes no link.

    Args:
        scratch: Gets a copy where one is needed.
    """
    if not (source / WEIGHTS_FILE).exists():
        return source
    copy = scratch / "with-weights"
    shutil.copytree(source, copy)
    return copy


def special_operators(folder: Path) -> list[str]:
    """Operators of a model that hold for one class of CPU, as `domain:type`, sorted."""
    model = onnx.load(str(folder / MODEL_FILE), load_external_data=False)
    return sorted(
        {f"{n.domain}:{n.op_type}" for n in all_nodes(model) if n.domain == _LAYOUT_DOMAIN}
    )


_NOTHING_COMPILED = "Unable to compile any nodes"


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
        provider: Short name of the provider that compiles.
        embed: Whether what was compiled goes into the model.

    Returns: Operator type -> how many nodes there are of it afterwards.

    Raises:
        StepError: The provider compiles nothing, is not there, refuses the model, or can't load
            what it has made of it.
    """
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

    model = onnx.load(str(folder / MODEL_FILE), load_external_data=False)
    return dict(sorted(Counter(node.op_type for node in model.graph.node).items()))


TENSORRT = "tensorrt"

CHOSEN_BY_TIMING = "TensorRT chooses kernels by timing them"
"""Reason why its compiled files differ from run to run."""

FOLDER_OPTIONS = ("trt_engine_cache_path", "trt_timing_cache_path")
"""Options that name the folder of the caches."""


def engine_options(
    inputs: Sequence[DummyInput], axes: Sequence[Axis], *, fp16: bool
) -> dict[str, str]:
    """The provider's options with which engines are built, and found again; but FOLDER_OPTIONS.

    One optimization profile spans the dynamic axes, so that one engine serves all their sizes and
    none is built again when another size comes.

    Args:
        fp16: Whether TensorRT may choose fp16 kernels.
    """
    options = {
        "trt_engine_cache_enable": "1",
        "trt_timing_cache_enable": "1",
        "trt_force_timing_cache": "0",
        "trt_fp16_enable": str(int(fp16)),
    }
    if any(isinstance(size, str) for each in inputs for size in each.shape):
        for name, attribute in (("min", "min"), ("opt", "example"), ("max", "max")):
            sizes = {axis.name: int(getattr(axis, attribute)) for axis in axes}
            options[f"trt_profile_{name}_shapes"] = ",".join(
                f"{each.name}:{_shape(each.shape, sizes)}" for each in inputs
            )
    return options


def build_engines(
    model: Path, target: Path, options: Mapping[str, str], feeds: Iterable[Feeds], where: str
) -> list[str]:
    """Run a model on TensorRT so that its caches fill; returns the files they are, sorted.

    Args:
        options: Provider options from `engine_options`.
        feeds: Sets of inputs to run on.

    Raises:
        StepError: TensorRT is not there, refuses the model, or takes none of its nodes.
    """
    folders = dict.fromkeys(FOLDER_OPTIONS, str(target))
    tensorrt = Target(TENSORRT, (Link(TENSORRT, {**options, **folders}),))
    session = open_session(model, target=tensorrt, where=where)
    for each in feeds:
        run_session(session, each, where=where)
    del session  # the timing cache is written when it goes
    made = sorted(path.name for path in target.iterdir() if path.is_file())
    if not any(name.endswith(".engine") for name in made):
        raise StepError(
            "TensorRT built no engine: it takes no node of this model",
            where=where,
            fix="run it on `providers: [cuda]`, or take `tensorrt` out of `ahead_of_time`",
        )
    return made


def _shape(shape: Sequence[Dimension], sizes: Mapping[str, int]) -> str:
    return "x".join(map(str, shape_at(shape, sizes)))
