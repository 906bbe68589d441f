"""The graph that ONNX Runtime runs on this machine, written down."""

from __future__ import annotations

import shutil
from pathlib import Path

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import to_json
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.loaders.onnx_bundle import session_options
from onnxbuild.onnxkit.model.graphs import all_nodes
from onnxbuild.onnxkit.model.model_files import EXTERNAL_FROM_BYTES, WEIGHTS_FILE, file_bytes
from onnxbuild.onnxkit.sessions.custom_operators import register_libraries
from onnxbuild.onnxkit.sessions.open import first_line, session_errors
from onnxbuild.onnxkit.sessions.settings import SessionSettings

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
        target: Is there.
        scratch: Empty.
        settings: Of the session that optimizes.
        where: `recipe:step`, for messages.

    Raises:
        StepError: ONNX Runtime refuses the model.
    """
    import onnxruntime

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
        source: Holds the model.
        scratch: Gets a copy where one is needed.
    """
    if not (source / WEIGHTS_FILE).exists():
        return source
    copy = scratch / "with-weights"
    shutil.copytree(source, copy)
    return copy


def special_operators(folder: Path) -> list[str]:
    """Operators of a model that hold for one class of CPU, as `domain:type`, sorted."""
    import onnx

    model = onnx.load(str(folder / MODEL_FILE), load_external_data=False)
    return sorted(
        {f"{n.domain}:{n.op_type}" for n in all_nodes(model) if n.domain == _LAYOUT_DOMAIN}
    )
