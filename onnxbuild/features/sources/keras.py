"""`model: {keras: FILE}`: an archive of Keras 3, exported on its torch backend and held against itself."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from onnxbuild.core.recipe import FRONTEND
from onnxbuild.core.source_error import about
from onnxbuild.expansion.feature import SourceFormat
from onnxbuild.expansion.model_source import ModelSource, NoOptions, SourceFacts, source_facts
from onnxbuild.onnxkit.keras_models.archive import (
    OUTPUTS,
    KerasArchive,
    chosen_outputs,
    is_earlier_form,
    read_archive,
    refuse_unrolled,
)
from onnxbuild.onnxkit.sources.parts import mapping_in


def _read(
    path: Path, archive: KerasArchive, _: NoOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """Read the facts of an archive for a recipe: inputs, axes, outputs.

    Raises:
        SourceError: The recipe asks for what the model does not take.
    """
    outputs = {OUTPUTS: chosen_outputs(archive, written.get("outputs"))}
    facts = {**archive.outline.facts, **outputs}
    found = source_facts(path, replace(archive.outline, facts=facts), written)
    own = mapping_in(written, "dummy_inputs")
    shapes = {
        name: mapping_in(own, name).get("shape", each["shape"])
        for name, each in found.recipe["dummy_inputs"].items()
    }
    with about(path):
        refuse_unrolled(archive, shapes)
    return found


FEATURE = SourceFormat(
    name="keras",
    source=ModelSource(
        help="an archive of Keras 3 (.keras), relative to this file: it says inputs, axes and outputs, as far as the "
        "recipe does not",
        look=read_archive,
        read=_read,
        frontend=FRONTEND,
        suffixes=(".keras",),
        recognizes=is_earlier_form,
    ),
)
