"""The error of a callable that returns no PyTorch module, with the line that its kind of model needs."""

import os
from collections.abc import Mapping

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.user_code import an

_LISTED = (
    "a torch.nn.Module, a ScriptModule or an ExportedProgram; or with `frontend: onnx` an onnx.ModelProto or the "
    "path of an .onnx file"
)

_BY_PACKAGE = {
    "onnx": "write `frontend: onnx` below `name`",
    "onnxscript": "return `program.model_proto`, and write `frontend: onnx`",
    "sklearn": "write `frontend: sklearn` below `name`",
    "xgboost": "write `frontend: xgboost` below `name`",
    "lightgbm": "write `frontend: lightgbm` below `name`",
    "keras": "save it by `model.save('FILE.keras')`, and write `model: {keras: FILE.keras}`; or set KERAS_BACKEND=torch before "
    "keras is imported",
    "tensorflow": "convert it (tf2onnx), return that, and write `frontend: onnx`",
    "jax": "write `model: {jax: FILE.py:CALLABLE}`",
    "jaxlib": "write `model: {jax: FILE.py:CALLABLE}`",
    "flax": "write `model: {jax: FILE.py:CALLABLE}`",
}
"""First part of the name of a type's module -> what to type."""


def no_module(made: object, target: str, where: str) -> StepError:
    """Say what was returned, what fits, and what to write for what was returned."""
    return StepError(
        f"{target} returned {_shown(made)}; expected {_LISTED}", where=where, fix=_fix(made)
    )


def _shown(made: object) -> str:
    if isinstance(made, type):
        return f"the class {made.__name__}"
    package = type(made).__module__.partition(".")[0]
    return f"{an(made)} of {package}" if package in _BY_PACKAGE else an(made)


def _fix(made: object) -> str:
    import torch

    if isinstance(made, type):
        return f"return an instance and not its class: `return {made.__name__}(...)`"
    for base in type(made).__mro__:
        package = base.__module__.partition(".")[0]
        if package in _BY_PACKAGE:
            return _BY_PACKAGE[package]
    if isinstance(made, str | os.PathLike):
        return _path_fix(os.fspath(made))
    if isinstance(made, Mapping) and any(isinstance(each, torch.Tensor) for each in made.values()):
        return "these are weights alone: build the module, `module.load_state_dict(...)`, and return it"
    if isinstance(made, tuple | list):
        inside = [n for n, each in enumerate(made) if isinstance(each, torch.nn.Module)]
        return (
            f"return the module alone: the item {inside[0]}"
            if inside
            else "return the module itself"
        )
    if callable(made):
        return "wrap it in a torch.nn.Module whose forward calls it; a function of JAX is named by `model: {jax: FILE.py:CALLABLE}`"
    return "return the module itself"


def _path_fix(path: str | bytes) -> str:
    suffix = os.path.splitext(os.fsdecode(path))[1].lower()  # noqa: PTH122 - of any path-like
    if suffix == ".pt2":
        return "write `model: {exported: FILE}`, or return `torch.export.load(path)`"
    if suffix in (".pt", ".jit", ".pth"):
        return "write `model: {torchscript: FILE}`, or return `torch.jit.load(path)`"
    return "write `frontend: onnx`, or `model: {onnx: FILE}` in place of the callable"
