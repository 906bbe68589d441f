"""ONNX Runtime's own graph optimizations, saved to a file at a level that any host can load."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from onnxbuild.core.errors import StepError
from onnxbuild.core.external_code import external_code
from onnxbuild.core.step import MODEL_FILE
from onnxbuild.onnxkit.frameworks import onnxruntime
from onnxbuild.onnxkit.host.capture_stderr import captured_stderr
from onnxbuild.onnxkit.model.model_files import WEIGHTS_FILE, loadable, model_path
from onnxbuild.onnxkit.sessions.custom_operators import register_libraries
from onnxbuild.onnxkit.sessions.open import first_line, session_errors

_AT_LOAD = ("ConvActivationFusion", "ConvAddActivationFusion", "GemmActivationFusion")
"""Left for the session that loads the model: it makes the same FusedConv and FusedGemm anyway, and
quantizers pass over them when they stand in the file."""

UNFUSABLE = (
    "ConstantSharing", "MatMulScaleFusion", "MatMulAddFusion", "MatmulTransposeFusion",
    "GemmActivationFusion", "BiasSoftmaxFusion",
)  # fmt: skip
"""ONNX Runtime's own optimizers that hide the patterns which the fusions look for: the list that
onnxruntime.transformers.optimizer.optimize_model turns off before them."""

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


T = TypeVar("T")

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENOMEM}


class ToolError(Exception):
    """A tool gave up; the message is its error's type and first line."""


def call_tool(call: Callable[[], T]) -> T:
    """Run one of ONNX Runtime's Python tools: fusions, quantizers, converters, shape inference.

    They walk graphs they did not expect with bare indexing and asserts, and raise `Exception`
    itself (symbolic_shape_infer.py: "Incomplete symbolic shape inference"), so nothing narrower
    than that catches their failures. Some leave files in the working folder
    (sym_shape_infer_temp.onnx), which in a child is the step's scratch.

    Args:
        call: The call, arguments applied.

    Raises:
        ToolError: The tool raised.
        OSError, MemoryError: The machine has no room for it.
    """
    with external_code(_blamed):
        return call()


def _blamed(error: BaseException) -> ToolError:
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        raise error
    return ToolError(f"{type(error).__name__}: {first_line(error)}")
