"""TensorFlow Lite: a .tflite file, converted by tf2onnx in an environment of its own and held against its interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.params import option
from onnxbuild.expansion.model_source import ModelSource, SourceFacts
from onnxbuild.frontend_steps.converted import Conversion, converting_frontend
from onnxbuild.onnxkit.converters.options import ENVIRONMENT_HELP, FrameworkEnvironment, built_in
from onnxbuild.onnxkit.converters.requests import TENSORS, TF2ONNX_OPSET
from onnxbuild.steps import convert_model, framework_reference

if TYPE_CHECKING:
    from onnxbuild.onnxkit.converters.tflite import LiteSignature


@dataclass(frozen=True, slots=True)
class TfliteOptions:
    """Keys next to `tflite` in `model`."""

    environment: FrameworkEnvironment | None = option(None, help=ENVIRONMENT_HELP)
    rename: Mapping[str, str] = field(
        default_factory=dict,
        metadata={"help": "the model's names of inputs and outputs -> those of the recipe"},
    )


def _look(path: Path) -> LiteSignature:
    """The outline of a file.

    Raises:
        SourceError: It is no TensorFlow Lite file.
        OSError: It can't be read.
    """
    from onnxbuild.onnxkit.converters.tflite import read_tflite

    return read_tflite(path)


def _read(
    path: Path, outline: LiteSignature, options: TfliteOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """Read the facts of a .tflite file: inputs, axes, outputs.

    Raises:
        SourceError: No recipe can declare it.
    """
    from onnxbuild.onnxkit.converters.declared_signature import declared_signature

    recipe, facts = declared_signature(
        path, outline.inputs, outline.outputs, options.rename, written
    )
    return SourceFacts((path,), (path,), recipe, {**facts, TENSORS: outline.tensors})


FEATURE = converting_frontend(
    "tflite",
    Conversion(
        convert=convert_model.TFLITE,
        reference=framework_reference.TFLITE,
        environment=built_in("tensorflow.txt", "tensorflow", "tf2onnx"),
        baseline="tensorflow-lite",
        last_opset=TF2ONNX_OPSET,
    ),
    ModelSource(
        help="a .tflite file of TensorFlow Lite, relative to this file: it says inputs, axes and outputs, as far "
        "as the recipe does not",
        options=TfliteOptions,
        look=_look,
        read=_read,
        suffixes=(".tflite",),
    ),
)
