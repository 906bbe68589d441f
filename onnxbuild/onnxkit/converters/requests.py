"""Requests to a framework's process, made from a step's parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.core.step import StepContext

SIGNATURE, TAGS, INPUTS, OUTPUTS = "signature", "tags", "inputs", "outputs"
TENSORS, RENAME = "tensors", "rename"
"""Facts of a model's file, in `Entrypoint.args`."""

TF2ONNX_OPSET = 18
"""The last that tf2onnx 1.17 writes, and the default of its models."""


class HasModel(Protocol):
    """Parameters of a step that runs a model's framework."""

    @property
    def model(self) -> Entrypoint:
        """The model's files, or the callable."""
        ...


class HasFunction(HasModel, Protocol):
    """The same, of one that the recipe's inputs are needed for."""

    @property
    def inputs(self) -> tuple[DummyInput, ...]:
        """Inputs, as the recipe declares them."""
        ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names in order; empty takes all."""
        ...

    @property
    def axes(self) -> tuple[Axis, ...]:
        """The recipe's."""
        ...


Asks = Callable[[StepContext, Any], dict[str, Any]]
"""(the step's context, its parameters) -> JSON."""


def saved_model(context: StepContext, params: HasModel) -> dict[str, Any]:
    """Return which signature of which SavedModel is meant."""
    path = context.files(params.model)[0][1]
    facts = params.model.args
    keys = (SIGNATURE, TAGS, INPUTS, OUTPUTS)
    return {"folder": str(path.parent), **{key: facts[key] for key in keys}}


def tflite(context: StepContext, params: HasModel) -> dict[str, Any]:
    """Return which file is meant, and what its tensors are called."""
    facts = params.model.args
    file = context.files(params.model)[0][1]
    return {"file": str(file), **{key: facts[key] for key in (TENSORS, INPUTS, OUTPUTS)}}


def jax(context: StepContext, params: HasFunction) -> dict[str, Any]:
    """Return where a callable is, what it is called with, and what its function takes."""
    file, folders = context.code(params.model)
    target, _, attribute = params.model.target.rpartition(":")
    return {
        "file": file,
        "folders": folders,
        "attribute": attribute,
        "shown": f"{target}:{attribute}",
        "args": dict(params.model.args),
        "env": dict(params.model.env),
        "inputs": [
            {"name": each.name, "dtype": each.dtype, "shape": list(each.shape)}
            for each in params.inputs
        ],
        "outputs": list(params.outputs),
        "examples": {axis.name: axis.example for axis in params.axes},
    }
