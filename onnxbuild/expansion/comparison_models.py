"""The steps of `bench`: models from elsewhere, and a measurement of all of them side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxbuild.core.address import StepAddress
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.comparison import Comparison, ComparisonModel
from onnxbuild.expansion.scope import Scope
from onnxbuild.steps import import_model


@dataclass(frozen=True, slots=True)
class ComparisonModels:
    """Models from elsewhere, by their names.

    Attributes:
        models: Those of ONNX.
        programs: Those that PyTorch runs.
    """

    models: Mapping[str, OutputRef] = field(default_factory=dict)
    programs: Mapping[str, OutputRef] = field(default_factory=dict)


def add_comparison_models(scope: Scope, comparison: Comparison) -> ComparisonModels:
    """Add what holds each to the recipe's inputs."""
    return ComparisonModels(
        {r.name: _model(scope, r) for r in comparison.models if not r.format},
        {r.name: _program(scope, r) for r in comparison.models if r.format},
    )


def _model(scope: Scope, model: ComparisonModel) -> OutputRef:
    params = import_model.ImportParams(model.model, model.shown, scope.recipe.inputs)
    step = scope.step(_address(scope.recipe, model), import_model.KIND, params)
    return OutputRef(step, "model")


def _program(scope: Scope, model: ComparisonModel) -> OutputRef:
    params = import_model.ImportProgramParams(
        model=model.model,
        name=model.shown,
        format=model.format,
        inputs=scope.recipe.inputs,
        axes=scope.recipe.axes,
    )
    step = scope.step(_address(scope.recipe, model), import_model.PROGRAM, params)
    return OutputRef(step, "program")


def _address(recipe: Recipe, model: ComparisonModel) -> StepAddress:
    return shared(recipe, f"against={model.name}")
