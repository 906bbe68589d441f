"""TensorFlow Lite: a .tflite file, converted by tf2onnx in an environment of its own and held against its interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.params import option
from onnxbuild.core.source_error import about
from onnxbuild.expansion.converted import Conversion, converting_frontend
from onnxbuild.expansion.model_source import ModelSource, SourceFacts
from onnxbuild.onnxkit.converters.options import ENVIRONMENT_HELP, FrameworkEnvironment, built_in
from onnxbuild.onnxkit.converters.requests import INPUTS, OUTPUTS, RENAME, TENSORS
from onnxbuild.steps import convert_model, framework_reference

if TYPE_CHECKING:
    from onnxbuild.onnxkit.converters.tflite import LiteSignature

_OPSET = 18
"""The last that tf2onnx 1.17 writes, and the default."""


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
    """What a file says: inputs, axes, outputs.

    Raises:
        SourceError: No recipe can declare it.
    """
    from onnxbuild.onnxkit.ready_onnx.declared import recipe_of
    from onnxbuild.onnxkit.ready_onnx.outline import Outline

    opset = written.get("opset")
    as_onnx = Outline(outline.inputs, outline.outputs, opset if type(opset) is int else _OPSET, ())
    with about(path):
        recipe = recipe_of(as_onnx, options.rename, written)
    facts = {
        TENSORS: outline.tensors,
        INPUTS: [each.name for each in outline.inputs],
        OUTPUTS: [each.name for each in outline.outputs],
        RENAME: dict(options.rename),
    }
    return SourceFacts((path,), (path,), recipe, facts)


FEATURE = converting_frontend(
    "tflite",
    Conversion(
        convert=convert_model.TFLITE,
        reference=framework_reference.TFLITE,
        environment=built_in("tensorflow.txt", "tensorflow", "tf2onnx"),
        last_opset=_OPSET,
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
