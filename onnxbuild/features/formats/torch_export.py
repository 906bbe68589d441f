"""`torch-export`: an exported program (.pt2), for newer PyTorch and ExecuTorch."""

from collections.abc import Iterator

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Format
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts, format_needs_frontend
from onnxbuild.expansion.feature import ProgramFormat
from onnxbuild.expansion.scope import Scope
from onnxbuild.frontend_steps.shared_steps import TORCH_EXPORT, exported_program
from onnxbuild.onnxkit.programs.archives import torch_export_fault
from onnxbuild.steps import torch_export


def _program(scope: Scope, each: Format) -> OutputRef:
    return exported_program(scope, each, "convert")


def _faults(parts: Parts) -> Iterator[Fault]:
    yield from format_needs_frontend(parts, parts.module_frontends, TORCH_EXPORT)


FEATURE = ProgramFormat(
    name=TORCH_EXPORT,
    options=torch_export.TorchExportOptions,
    kinds=(torch_export.KIND,),
    faults=_faults,
    program=_program,
    file_fault=torch_export_fault,
)
