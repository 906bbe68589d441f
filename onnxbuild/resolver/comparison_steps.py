"""The steps of `bench`: models from elsewhere, and a measurement of all of them side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from onnxbuild.core.address import StepAddress
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.rival import Comparison, Rival
from onnxbuild.resolver.addresses import shared
from onnxbuild.resolver.assembly import Assembly
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


def add_rivals(assembly: Assembly, recipe: Recipe, comparison: Comparison) -> Rivals:
    """Add what holds each to the recipe's inputs."""
    return Rivals(
        {r.name: _model(assembly, recipe, r) for r in comparison.rivals if not r.format},
        {r.name: _program(assembly, recipe, r) for r in comparison.rivals if r.format},
    )


def _model(assembly: Assembly, recipe: Recipe, rival: Rival) -> OutputRef:
    params = import_model.ImportParams(rival.model, rival.shown, recipe.inputs)
    step = assembly.step(_address(recipe, rival), import_model.KIND.name, params, recipe.location)
    return OutputRef(step, "model")


def _program(assembly: Assembly, recipe: Recipe, rival: Rival) -> OutputRef:
    params = import_program.ImportProgramParams(
        model=rival.model,
        name=rival.shown,
        format=rival.format,
        inputs=recipe.inputs,
        axes=recipe.axes,
    )
    step = assembly.step(
        _address(recipe, rival), import_program.KIND.name, params, recipe.location
    )
    return OutputRef(step, "program")


def _address(recipe: Recipe, rival: Rival) -> StepAddress:
    return shared(recipe, f"against={rival.name}")
