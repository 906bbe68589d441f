"""ONNX's own checker and shape inference, by path, so that models over 2 GB pass through.

Neither reads weights in a file next to the graph, but both refuse them behind a link, as a step's
inputs are. There, both are given the graph next to a hole of the weights' size.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.model.model_files import WEIGHTS_FILE, load_model, model_path
from onnxbuild.onnxkit.model.opsets import needed_opset

_WRITE_OPSET = "write `opset: {opset}`"
_UNREGISTERED = re.compile(r"No Op registered for (?P<name>\S+) with domain_version")


def checker_faults(
    folder_or_file: Path, scratch: Path, *, later_opset: str = _WRITE_OPSET
) -> list[Finding]:
    """Check a model with onnx's checker and strict shape inference; return their faults.

    Operators of unknown domains (com.microsoft) are left unchecked, as onnx does.

    Args:
        folder_or_file: The model.
        scratch: Where the inferred model may be written.
        later_opset: Fix for an operator that needs a later opset, with a place for `{opset}`.

    Raises:
        StepError: The model can't be read, or its weights are not where it says.
    """
    phase("checking the model")
    import onnx

    path = str(_checkable(model_path(folder_or_file), scratch))
    try:
        onnx.checker.check_model(path)
    except onnx.checker.ValidationError as error:
        return [
            _later_opset(path, "checker", later_opset)
            or _unknown_operator(str(error))
            or Finding(
                f"the ONNX checker refuses the model: {_essence(error)}",
                where="checker",
                fix="correct that node where the graph is made: its operator is not as ONNX has it "
                "(https://onnx.ai/onnx/operators)",
            )
        ]
    try:
        onnx.shape_inference.infer_shapes_path(
            path, str(scratch / "inferred.onnx"), check_type=True, strict_mode=True
        )
    except (onnx.shape_inference.InferenceError, RuntimeError) as error:
        return [
            _later_opset(path, "shape inference", later_opset)
            or Finding(
                f"shape inference fails: {_essence(error)}",
                where="shape inference",
                fix="correct that node where the graph is made: its shapes or types contradict what it reads",
            )
        ]
    return []


def _later_opset(path: str, where: str, fix: str) -> Finding | None:
    """The finding that names what needs a later opset; None where that is not the cause."""
    needed = needed_opset(load_model(Path(path), weights="left"))
    return needed and Finding(needed[0], where=where, fix=fix.format(opset=needed[1]))


def _unknown_operator(said: str) -> Finding | None:
    """The finding that names an operator that ONNX has in no version; None where that is not the cause."""
    import onnx

    found = _UNREGISTERED.search(said)
    if found is None or onnx.defs.has(found["name"], ""):
        return None
    return Finding(
        f"no version of ONNX has the operator '{found['name']}'",
        where="checker",
        fix="if it is your own, give its nodes a domain of yours and compile it into a library "
        "(`operators: {libraries: [PATH]}`), or make it a model-local function (docs/operators.md)",
    )


def _checkable(path: Path, scratch: Path) -> Path:
    """The model, or its graph next to a sparse file of the weights' size."""
    weights = path.parent / WEIGHTS_FILE
    if not weights.is_symlink():
        return path
    load_model(path, weights="mapped")  # holds offsets and lengths against the real file
    folder = scratch / "checked"
    folder.mkdir(exist_ok=True)
    shutil.copyfile(path, folder / path.name)
    with (folder / WEIGHTS_FILE).open("wb") as file:
        file.truncate(weights.stat().st_size)
    return folder / path.name


def _essence(error: Exception) -> str:
    """A message's lines that say something, in one."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ".join(line for line in lines if not line.startswith("==>"))[:400]
