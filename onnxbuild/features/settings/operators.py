"""`operators`: libraries of custom operators, registered in every session and shipped with the model."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.step import StepKind
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts, key_needs_frontend
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.feature import Feature, Section
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.sessions.custom_operators import NODES_INPUT, OPERATORS_INPUT
from onnxbuild.steps import export, operators, provider

SECTION = "operators"
LIBRARIES = f"{SECTION}.libraries"
"""Name of the files in Recipe.entrypoints."""

_RUNTIME = "onnxruntime"
_WITHOUT = frozenset({operators.KIND.name, provider.KIND.name})
"""Kinds with ONNX Runtime in their toolchain that open none of the recipe's models."""

_TORCH = re.compile(r"\w+::\w+(\.\w+)?")
_ONNX = re.compile(r"[\w.]+::\w+(@[1-9]\d*)?")
_OWN = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})


@dataclass(frozen=True, slots=True)
class OperatorsOptions:
    """Custom operators: libraries that ONNX Runtime loads in every session of the model's."""

    libraries: tuple[str, ...] = field(
        default=(),
        compare=False,  # the files are in Recipe.entrypoints, whatever they are relative to
        metadata={
            "help": "shared libraries with a function RegisterCustomOps, relative to this file; for each "
            "platform its own"
        },
    )
    nodes: dict[str, str] = field(
        default_factory=dict,
        metadata={
            "help": "PyTorch operator -> operator of a library that it becomes in ONNX: "
            "`mylib::fancy: mylib.example::Fancy`"
        },
    )


def _inputs(scope: Scope, kind: StepKind) -> dict[str, OutputRef]:
    """The libraries, as an input of a step that opens sessions or ships models; nothing where a recipe has none."""
    graph, recipe = scope.graph, scope.recipe
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


def _faults(parts: Parts) -> Iterator[Fault]:
    options = parts.sections.get(SECTION)
    if not isinstance(options, OperatorsOptions) or parts.node(SECTION) is None:
        return
    if not options.libraries:
        what = f"{SECTION} names no library"
        fix = f"write `{SECTION}: {{libraries: [PATH]}}`, or remove `{SECTION}`"
        yield Fault(what, parts.key_at(SECTION), fix)
    yield from key_needs_frontend(parts, parts.module_frontends, SECTION, "nodes")
    for name, node in options.nodes.items():
        at = parts.at(SECTION, "nodes", name)
        if not _TORCH.fullmatch(name):
            what = f"{SECTION}.nodes has '{name}'; expected a PyTorch operator, NAMESPACE::NAME"
            yield Fault(what, at, 'write it as in `torch.library.custom_op("mylib::fancy")`')
        if not _ONNX.fullmatch(node) or node.partition("::")[0] in _OWN:
            what = f"{SECTION}.nodes.{name} is '{node}'; expected DOMAIN::NAME in a domain of the library's own"
            yield Fault(
                what, at, "write `mylib.example::Fancy`, or `mylib.example::Fancy@2` for version 2"
            )


FEATURE = Feature(
    name=SECTION,
    sections=(
        Section(
            name=SECTION,
            options=OperatorsOptions,
            below={"libraries": "files"},
            needs_onnx="ONNX Runtime loads them",
        ),
    ),
    kinds=(operators.KIND,),
    faults=_faults,
    inputs=_inputs,
)
