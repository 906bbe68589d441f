"""The exported program (`torch.export`) of a recipe's model; formats made of one share it."""

from __future__ import annotations

from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.recipe import Format
from onnxbuild.expansion.scope import Scope
from onnxbuild.steps import torch_export

NAME = "torch-export"
"""The format that is this program."""


def exported_program(scope: Scope, each: Format, step: str) -> OutputRef:
    """Add the step that exports it, or find it again.

    Args:
        scope: The recipe.
        each: The format that it is for.
        step: Its name among that format's.
    """
    recipe = scope.recipe
    asked = next((other.options for other in recipe.formats if other.name == NAME), None)
    options = asked or torch_export.TorchExportOptions()
    assert isinstance(options, torch_export.TorchExportOptions)
    params = torch_export.TorchExportParams(
        recipe.model, recipe.inputs, recipe.outputs, recipe.axes, options
    )
    address = StepAddress(recipe.name, step, each.name)
    made = scope.step(address, torch_export.KIND, params, at=each.location)
    return OutputRef(made, "program")
