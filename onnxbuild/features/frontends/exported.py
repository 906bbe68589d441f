"""An exported program: `model: {exported: FILE.pt2}`, converted to ONNX and held against itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.source_error import about
from onnxbuild.expansion.evaluation import baseline_score
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.model_source import ModelSource, NoOptions, SourceFacts
from onnxbuild.frontend_steps.module_source import module_reference, module_source
from onnxbuild.onnxkit.modules.program_modules import EXPORTED, FORM, MADE_BY

if TYPE_CHECKING:
    from onnxbuild.onnxkit.programs.exported_outline import ExportedOutline


def _look(path: Path) -> ExportedOutline:
    """Return the outline of a .pt2 file.

    Raises:
        SourceError: It holds no exported program.
        OSError: It can't be read.
    """
    from onnxbuild.onnxkit.programs.exported_outline import exported_outline

    return exported_outline(path)


def _read(
    path: Path, outline: ExportedOutline, _: NoOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """Inputs, ranges of axes and outputs of an exported program.

    Raises:
        SourceError: No recipe can declare it, or this one asks for sizes that it does not take.
    """
    from onnxbuild.onnxkit.programs.exported_declared import recipe_of_exported

    with about(path):
        recipe = recipe_of_exported(outline, written)
    facts = {FORM: EXPORTED, MADE_BY: outline.made_by}
    return SourceFacts(files=(path,), read=(path,), recipe=recipe, facts=facts)


FEATURE = Frontend(
    name=EXPORTED,
    gives_module=True,
    source=module_source,
    reference=module_reference,
    score=baseline_score,
    model_source=ModelSource(
        help="a program of torch.export (.pt2), relative to this file: it says its inputs, the ranges of its axes "
        "and its outputs. It holds code, which runs in fenced steps",
        look=_look,
        read=_read,
        suffixes=(".pt2",),
    ),
)
