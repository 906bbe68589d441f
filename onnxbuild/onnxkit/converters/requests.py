"""What a framework's process is asked for, from a step's parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import StepContext

SIGNATURE, TAGS, INPUTS, OUTPUTS = "signature", "tags", "inputs", "outputs"
"""Facts of a model's file, in `Entrypoint.args`."""


class HasModel(Protocol):
    """Parameters of a step that runs a model's framework."""

    @property
    def model(self) -> Entrypoint:
        """The model's files, or the callable."""
        ...


Asks = Callable[[StepContext, Any], dict[str, Any]]
"""(the step's context, its parameters) -> JSON."""


def saved_model(context: StepContext, params: HasModel) -> dict[str, Any]:
    """Return which signature of which SavedModel is meant."""
    path = context.files(params.model)[0][1]
    facts = params.model.args
    keys = (SIGNATURE, TAGS, INPUTS, OUTPUTS)
    return {"folder": str(path.parent), **{key: facts[key] for key in keys}}
