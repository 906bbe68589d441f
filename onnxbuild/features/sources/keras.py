"""`model: {keras: FILE}`: an archive of Keras 3, exported on its torch backend and held against itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.recipe import FRONTEND
from onnxbuild.core.source_error import about
from onnxbuild.expansion.feature import SourceFormat
from onnxbuild.expansion.model_source import ModelSource, NoOptions, SourceFacts
from onnxbuild.onnxkit.data.completed_axes import completed_axes, mapping_in
from onnxbuild.onnxkit.modules.program_modules import FORM

if TYPE_CHECKING:
    from onnxbuild.onnxkit.keras_models.archive import KerasOutline


def _look(path: Path) -> KerasOutline:
    """Return the outline of an archive.

    Raises:
        SourceError: It is none, damaged, or holds code.
        OSError: It can't be read.
    """
    from onnxbuild.onnxkit.keras_models.archive import read_archive

    return read_archive(path)


def _read(
    path: Path, outline: KerasOutline, _: NoOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """Read the facts of an archive for a recipe: inputs, axes, outputs.

    Raises:
        SourceError: The recipe asks for what the model does not take.
    """
    from onnxbuild.onnxkit.keras_models.declared import chosen_outputs, declared_inputs, names_of
    from onnxbuild.onnxkit.keras_models.load import INPUTS, KERAS, OUTPUTS, WRITTEN_BY

    with about(path):
        inputs = declared_inputs(outline, mapping_in(written, "dummy_inputs"))
    outputs, is_by_name = chosen_outputs(outline, written.get("outputs"))
    shapes = [each["shape"] for each in inputs.values()]
    axes = completed_axes(shapes, mapping_in(written, "dynamic_axes"))
    recipe = {
        "dummy_inputs": inputs,
        "outputs": outputs,
        **({"dynamic_axes": axes} if axes else {}),
    }
    facts = {
        FORM: KERAS,
        INPUTS: list(names_of(outline)),
        OUTPUTS: outputs if is_by_name else [],
        WRITTEN_BY: outline.keras,
    }
    return SourceFacts((path,), (path,), recipe, facts)


def _recognizes(path: Path) -> bool:
    from onnxbuild.onnxkit.keras_models.archive import is_earlier_form

    return is_earlier_form(path)


FEATURE = SourceFormat(
    name="keras",
    source=ModelSource(
        help="an archive of Keras 3 (.keras), relative to this file: it says inputs, axes and outputs, as far as the "
        "recipe does not",
        look=_look,
        read=_read,
        frontend=FRONTEND,
        suffixes=(".keras",),
        recognizes=_recognizes,
    ),
)
