"""TensorFlow Lite: a .tflite file, converted by tf2onnx in an environment of its own and held against its interpreter."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxbuild.core.params import option
from onnxbuild.expansion.model_source import ModelSource, SourceFacts
from onnxbuild.frontend_steps.converted import facts_of_signature, framework_frontend
from onnxbuild.onnxkit.converters.frameworks import ENVIRONMENT_HELP, TFLITE, FrameworkEnvironment
from onnxbuild.onnxkit.converters.tflite import read_tflite
from onnxbuild.onnxkit.sources.outline import SourceOutline
from onnxbuild.onnxkit.sources.renaming import RENAME_HELP


@dataclass(frozen=True, slots=True)
class TfliteOptions:
    """Keys next to `tflite` in `model`."""

    environment: FrameworkEnvironment | None = option(None, help=ENVIRONMENT_HELP)
    rename: Mapping[str, str] = field(default_factory=dict, metadata={"help": RENAME_HELP})


def _read(
    path: Path, outline: SourceOutline, options: TfliteOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """Read the facts of a .tflite file: inputs, axes, outputs.

    Raises:
        SourceError: No recipe can declare it.
    """
    return facts_of_signature(path, outline, options.rename, written)


FEATURE = framework_frontend(
    TFLITE,
    ModelSource(
        help="a .tflite file of TensorFlow Lite, relative to this file: it says inputs, axes and outputs, as far "
        "as the recipe does not",
        options=TfliteOptions,
        look=read_tflite,
        read=_read,
        suffixes=(".tflite",),
    ),
    "tensorflow-lite",
)
