"""`model: {keras: FILE}`: an archive of Keras 3, exported on its torch backend and held against itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.recipe import FRONTEND
from onnxbuild.expansion.model_source import ModelSource, SourceError, SourceFacts
from onnxbuild.expansion.source_format import SourceFormat
from onnxbuild.onnxkit.keras_models.archive import (
    ArchiveError,
    KerasOutline,
    is_earlier_form,
    read_archive,
)
from onnxbuild.onnxkit.keras_models.declared import (
    DeclaredError,
    chosen_outputs,
    declared_inputs,
    names_of,
)
from onnxbuild.onnxkit.keras_models.load import INPUTS, KERAS, OUTPUTS, WRITTEN_BY
from onnxbuild.onnxkit.modules.program_modules import FORM
from onnxbuild.onnxkit.ready_onnx.declared import completed_axes


@dataclass(frozen=True, slots=True)
class KerasOptions:
    """Keys next to `keras` in `model`: none."""


def _look(path: Path) -> KerasOutline:
    try:
        return read_archive(path)
    except ArchiveError as error:
        raise SourceError(str(error), error.fix) from error


def _read(
    path: Path, outline: KerasOutline, _: KerasOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """What an archive says: inputs, axes, outputs.

    Raises:
        SourceError: The recipe asks for what the model does not take.
    """
    own = _mapping(written, "dummy_inputs")
    try:
        inputs = declared_inputs(outline, own)
    except DeclaredError as error:
        raise SourceError(f"{path.name}: {error}", error.fix, error.key, error.mend) from error
    outputs, is_by_name = chosen_outputs(outline, written.get("outputs"))
    shapes = [each["shape"] for each in inputs.values()]
    axes = completed_axes(shapes, _mapping(written, "dynamic_axes"))
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


def _mapping(written: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = written.get(key)
    return value if isinstance(value, Mapping) else {}


FEATURE = SourceFormat(
    name=KERAS,
    source=ModelSource(
        help="an archive of Keras 3 (.keras), relative to this file: it says inputs, axes and outputs, as far as the "
        "recipe does not",
        options=KerasOptions,
        look=_look,
        read=_read,
        frontend=FRONTEND,
        suffixes=(".keras",),
        recognizes=is_earlier_form,
    ),
)
