"""The steps of `bench`: models from elsewhere, and a measurement of all of them side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxbuild.core.address import StepAddress
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.rival import Comparison, Rival
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.scope import Scope
from onnxbuild.steps import import_model, import_program


@dataclass(frozen=True, slots=True)
class Rivals:
    """Models from elsewhere, by their names.

    Attributes:
        models: Those of ONNX.
        programs: Those that PyTorch runs.
    """

    models: Mapping[str, OutputRef] = field(default_factory=dict)
    programs: Mapping[str, OutputRef] = field(default_factory=dict)


def add_rivals(scope: Scope, comparison: Comparison) -> Rivals:
    """Add what holds each to the recipe's inputs."""
    return Rivals(
        {r.name: _model(scope, r) for r in comparison.rivals if not r.format},
        {r.name: _program(scope, r) for r in comparison.rivals if r.format},
    )


def _model(scope: Scope, rival: Rival) -> OutputRef:
    params = import_model.ImportParams(rival.model, rival.shown, scope.recipe.inputs)
    step = scope.step(_address(scope.recipe, rival), import_model.KIND, params)
    return OutputRef(step, "model")


def _program(scope: Scope, rival: Rival) -> OutputRef:
    params = import_program.ImportProgramParams(
        model=rival.model,
        name=rival.shown,
        format=rival.format,
        inputs=scope.recipe.inputs,
        axes=scope.recipe.axes,
    )
    step = scope.step(_address(scope.recipe, rival), import_program.KIND, params)
    return OutputRef(step, "program")


def _address(recipe: Recipe, rival: Rival) -> StepAddress:
    return shared(recipe, f"against={rival.name}")
