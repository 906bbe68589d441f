"""ONNX's own checker and shape inference, by path, so that models over 2 GB pass through."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.model_files import model_path


def checker_faults(folder_or_file: Path, scratch: Path) -> list[Finding]:
    """What onnx's checker and strict shape inference say against a model.

    Operators of unknown domains (com.microsoft) are left unchecked, as onnx does.

    Args:
        folder_or_file: The model.
        scratch: Where the inferred model may be written.
    """
    import onnx

    path = str(model_path(folder_or_file))
    try:
        onnx.checker.check_model(path)
    except onnx.checker.ValidationError as error:
        return [
            Finding(
                f"the ONNX checker refuses the model: {_essence(error)}",
                where="checker",
                fix="try another `opset`",
            )
        ]
    try:
        onnx.shape_inference.infer_shapes_path(
            path, str(scratch / "inferred.onnx"), check_type=True, strict_mode=True
        )
    except (onnx.shape_inference.InferenceError, RuntimeError) as error:
        return [
            Finding(
                f"shape inference fails: {_essence(error)}",
                where="shape inference",
                fix="the model's shapes contradict each other; try another `opset`",
            )
        ]
    return []


def _essence(error: Exception) -> str:
    """A message's lines that say something, in one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(line for line in lines if not line.startswith("==>"))[:400]
