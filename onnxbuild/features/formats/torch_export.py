"""`torch-export`: an exported program (.pt2), for newer PyTorch and ExecuTorch."""

from __future__ import annotations

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Format
from onnxbuild.expansion.exported_program import NAME, exported_program
from onnxbuild.expansion.feature import ProgramFormat
from onnxbuild.expansion.scope import Scope
from onnxbuild.steps import torch_export


def _program(scope: Scope, each: Format) -> OutputRef:
    return exported_program(scope, each, "convert")


FEATURE = ProgramFormat(
    name=NAME,
    options=torch_export.TorchExportOptions,
    kinds=(torch_export.KIND,),
    program=_program,
)
