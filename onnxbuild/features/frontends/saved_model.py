"""TensorFlow: a SavedModel, converted by tf2onnx in an environment of its own and held against TensorFlow."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxbuild.core.params import option
from onnxbuild.expansion.model_source import ModelSource, SourceFacts
from onnxbuild.frontend_steps.converted import facts_of_signature, framework_frontend
from onnxbuild.onnxkit.converters.frameworks import (
    ENVIRONMENT_HELP,
    SAVED_MODEL,
    FrameworkEnvironment,
)
from onnxbuild.onnxkit.converters.saved_model import (
    SavedModelOutline,
    chosen_signature,
    is_saved_model,
    read_saved_model,
)
from onnxbuild.onnxkit.sources.renaming import RENAME_HELP


@dataclass(frozen=True, slots=True)
class SavedModelOptions:
    """Keys next to `saved_model` in `model`."""

    signature: str = option("", help="which signature; left out: the only one")
    environment: FrameworkEnvironment | None = option(None, help=ENVIRONMENT_HELP)
    rename: Mapping[str, str] = field(default_factory=dict, metadata={"help": RENAME_HELP})


def _read(
    path: Path, outline: SavedModelOutline, options: SavedModelOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """Read the facts of a SavedModel: inputs, axes, outputs.

    Raises:
        SourceError: No recipe can declare it, or it has several signatures.
    """
    signature = chosen_signature(outline, options.signature)
    return facts_of_signature(path, signature, options.rename, written)


FEATURE = framework_frontend(
    SAVED_MODEL,
    ModelSource(
        words="tensorflow tf",
        help="the folder of a SavedModel of TensorFlow, relative to this file: it says inputs, axes and outputs, "
        "as far as the recipe does not",
        options=SavedModelOptions,
        look=read_saved_model,
        read=_read,
        is_folder=True,
        recognizes=is_saved_model,
    ),
    "tensorflow",
)
