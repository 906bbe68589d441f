"""The recipe's libraries of custom operators, and the steps that take them."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.graph_builder import GraphBuilder
from onnxbuild.onnxkit.sessions.custom_operators import NODES_INPUT, OPERATORS_INPUT
from onnxbuild.steps import export, operators, provider

SECTION = "operators"
LIBRARIES = f"{SECTION}.libraries"
"""Name of the files in Recipe.entrypoints."""

_RUNTIME = "onnxruntime"
_WITHOUT = frozenset({operators.KIND.name, provider.KIND.name})
"""Kinds with ONNX Runtime in their toolchain that open none of the recipe's models."""


@dataclass(frozen=True, slots=True)
class OperatorsOptions:
    """Custom operators: libraries that ONNX Runtime loads in every session of the model's."""

    libraries: tuple[str, ...] = field(
        default=(),
        metadata={
            "help": "shared libraries with a function RegisterCustomOps, relative to this file; for each "
            "platform its own"
        },
    )
    nodes: dict[str, str] = field(
        default_factory=dict,
        metadata={
            "help": "PyTorch operator -> operator of a library that it becomes in ONNX: "
            "`mylib::fancy: mylib.example::Fancy`",
        },
    )


def operator_inputs(graph: GraphBuilder, recipe: Recipe, kind: StepKind) -> dict[str, OutputRef]:
    """The libraries, as an input of a step that opens sessions or ships models; nothing where a recipe has none."""
    libraries = recipe.entrypoints.get(LIBRARIES)
    if libraries is None or _RUNTIME not in kind.toolchain or kind.name in _WITHOUT:
        return {}
    options = recipe.section(SECTION, OperatorsOptions)
    step = graph.step(
        shared(recipe, SECTION),
        operators.KIND,
        operators.OperatorsParams(libraries, options.nodes),
        recipe.lines.get(SECTION, recipe.location),
    )
    inputs = {OPERATORS_INPUT: OutputRef(step, "libraries")}
    if kind is export.KIND and options.nodes:
        inputs[NODES_INPUT] = OutputRef(step, "nodes")
    return inputs
