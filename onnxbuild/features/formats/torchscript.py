"""`torchscript`: a traced or scripted program, for LibTorch and for older PyTorch."""

from collections.abc import Iterator

from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.recipe import Format
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts, format_needs_frontend
from onnxbuild.expansion.feature import ProgramFormat
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.programs.archives import torchscript_fault
from onnxbuild.steps import torchscript
from onnxbuild.steps.torchscript import TorchScriptOptions, TorchScriptParams


def _program(scope: Scope, each: Format) -> OutputRef:
    recipe = scope.recipe
    options = each.options_as(TorchScriptOptions)
    step = scope.step(
        StepAddress(recipe.name, "convert", each.name),
        torchscript.KIND,
        TorchScriptParams(recipe.model, recipe.inputs, recipe.outputs, recipe.axes, options),
        at=each.location,
    )
    return OutputRef(step, "program")


def _faults(parts: Parts) -> Iterator[Fault]:
    yield from format_needs_frontend(parts, parts.module_frontends, "torchscript")


FEATURE = ProgramFormat(
    name="torchscript",
    options=TorchScriptOptions,
    kinds=(torchscript.KIND,),
    faults=_faults,
    program=_program,
    file_fault=torchscript_fault,
)
