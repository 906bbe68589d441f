"""`aotinductor`: the exported program, compiled to a shared library for this machine's CPU."""

from collections.abc import Iterator

from onnxbuild.core.graph import OutputRef, StepAddress
from onnxbuild.core.recipe import Format
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts, format_needs_frontend
from onnxbuild.expansion.feature import ProgramFormat
from onnxbuild.expansion.scope import Scope
from onnxbuild.frontend_steps.shared_steps import exported_program
from onnxbuild.onnxkit.programs.archives import aotinductor_fault
from onnxbuild.steps import aotinductor, torch_export
from onnxbuild.steps.aotinductor import AotInductorOptions, AotInductorParams


def _program(scope: Scope, each: Format) -> OutputRef:
    step = scope.step(
        StepAddress(scope.recipe.name, "convert", each.name),
        aotinductor.KIND,
        AotInductorParams(each.options_as(AotInductorOptions)),
        {"program": exported_program(scope, each, "export")},
        at=each.location,
    )
    return OutputRef(step, "program")


def _faults(parts: Parts) -> Iterator[Fault]:
    yield from format_needs_frontend(parts, parts.module_frontends, "aotinductor")


FEATURE = ProgramFormat(
    name="aotinductor",
    options=AotInductorOptions,
    kinds=(torch_export.KIND, aotinductor.KIND),
    faults=_faults,
    program=_program,
    file_fault=aotinductor_fault,
)
