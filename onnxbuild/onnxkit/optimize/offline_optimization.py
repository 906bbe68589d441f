"""ONNX Runtime's own graph optimizations, saved to a file at a level that any host can load."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.host.capture_stderr import captured_stderr
from onnxbuild.onnxkit.model.model_files import WEIGHTS_FILE, model_path
from onnxbuild.onnxkit.model.session_input import loadable
from onnxbuild.onnxkit.sessions.custom_operators import register_libraries
from onnxbuild.onnxkit.sessions.open import first_line, session_errors

_AT_LOAD = ("ConvActivationFusion", "ConvAddActivationFusion", "GemmActivationFusion")
"""Left for the session that loads the model: it makes the same FusedConv and FusedGemm anyway, and
quantizers pass over them when they stand in the file."""

_APPLIED = re.compile(r"GraphTransformer (\w+) modified: \d+ with status: OK")
"""ONNX Runtime's own log (core/optimizer/graph_transformer.cc), the only place that lists them."""

_LOG_INFO, _LOG_FATAL = 1, 4


def optimize_offline(
    source: Path,
    folder: Path,
    *,
    level: Literal["basic", "extended"],
    disabled: Sequence[str] = (),
    where: str = "",
    log_severity: int = _LOG_FATAL,
) -> Path:
    """Optimize a model for the CPU provider and save the graph.

    Levels above `extended` bring layouts of one host (NCHWc), so there is no way to ask for them:
    https://onnxruntime.ai/docs/performance/model-optimizations/graph-optimizations.html

    Args:
        source: A model's file, or the folder that holds MODEL_FILE.
        folder: Where MODEL_FILE is written, with external weights if `source` has them.
        level: How far to go.
        disabled: Names of ONNX Runtime's optimizers to leave out.
        where: `recipe:step`, for messages.
        log_severity: From where on ONNX Runtime writes to standard error: 1 info, 4 fatal.

    Returns: `folder`.

    Raises:
        StepError: ONNX Runtime refuses the model.
    """
    import onnxruntime

    folder.mkdir(parents=True, exist_ok=True)
    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        levels.ORT_ENABLE_BASIC if level == "basic" else levels.ORT_ENABLE_EXTENDED
    )
    options.optimized_model_filepath = str(folder / MODEL_FILE)
    options.log_severity_level = log_severity
    options.intra_op_num_threads = 1
    register_libraries(options, where=where)
    path = model_path(source)
    if (path.parent / WEIGHTS_FILE).exists():
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_file_name", WEIGHTS_FILE
        )
        options.add_session_config_entry(
            "session.optimized_model_external_initializers_min_size_in_bytes", "1024"
        )
    entries: dict[str, str] = {}
    model = loadable(path, entries)
    for key, value in entries.items():
        options.add_session_config_entry(key, value)
    try:
        onnxruntime.InferenceSession(
            model,
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=[*_AT_LOAD, *disabled],
        )
    except session_errors() as error:
        raise StepError(
            f"ONNX Runtime refuses to optimize the model: {first_line(error)}",
            where=where,
            fix="write `optimize: {level: none}`",
        ) from error
    return folder


def optimizer_names(
    source: Path, folder: Path, *, level: Literal["basic", "extended"]
) -> list[str]:
    """The optimizers that ONNX Runtime applies to a model, each once, in their order.

    Args:
        source: As of `optimize_offline`.
        folder: Where an optimized model may be written.
        level: How far to go.

    Raises:
        StepError: ONNX Runtime refuses the model.
    """
    with captured_stderr(passed_on=False) as said:
        optimize_offline(source, folder, level=level, log_severity=_LOG_INFO)
    return list(dict.fromkeys(_APPLIED.findall(said.text)))
