"""TensorFlow: a SavedModel, converted by tf2onnx in an environment of its own and held against TensorFlow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.params import option
from onnxbuild.expansion.model_source import ModelSource, SourceFacts
from onnxbuild.frontend_steps.converted import Conversion, converting_frontend
from onnxbuild.onnxkit.converters.options import ENVIRONMENT_HELP, FrameworkEnvironment, built_in
from onnxbuild.onnxkit.converters.requests import SIGNATURE, TAGS, TF2ONNX_OPSET
from onnxbuild.steps import convert_model, framework_reference

if TYPE_CHECKING:
    from onnxbuild.onnxkit.converters.saved_model import SavedModelOutline


@dataclass(frozen=True, slots=True)
class SavedModelOptions:
    """Keys next to `saved_model` in `model`."""

    signature: str = option("", help="which signature; left out: the only one")
    environment: FrameworkEnvironment | None = option(None, help=ENVIRONMENT_HELP)
    rename: Mapping[str, str] = field(
        default_factory=dict,
        metadata={"help": "the model's names of inputs and outputs -> those of the recipe"},
    )


def _look(path: Path) -> SavedModelOutline:
    """The outline of a SavedModel.

    Raises:
        SourceError: It is none.
        OSError: It can't be read.
    """
    from onnxbuild.onnxkit.converters.saved_model import read_saved_model

    return read_saved_model(path)


def _read(
    path: Path, outline: SavedModelOutline, options: SavedModelOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """Read the facts of a SavedModel: inputs, axes, outputs.

    Raises:
        SourceError: No recipe can declare it, or it has several signatures.
    """
    from onnxbuild.onnxkit.converters.declared_signature import declared_signature
    from onnxbuild.onnxkit.converters.saved_model import chosen_signature

    signature = chosen_signature(outline, options.signature)
    recipe, facts = declared_signature(
        path, signature.inputs, signature.outputs, options.rename, written
    )
    facts |= {SIGNATURE: signature.name, TAGS: list(outline.tags)}
    return SourceFacts(outline.files, outline.files[:1], recipe, facts)


def _recognizes(path: Path) -> bool:
    from onnxbuild.onnxkit.converters.saved_model import is_saved_model

    return is_saved_model(path)


FEATURE = converting_frontend(
    "saved_model",
    Conversion(
        convert=convert_model.SAVED_MODEL,
        reference=framework_reference.SAVED_MODEL,
        environment=built_in("tensorflow.txt", "tensorflow", "tf2onnx"),
        baseline="tensorflow",
        last_opset=TF2ONNX_OPSET,
    ),
    ModelSource(
        words="tensorflow tf",
        help="the folder of a SavedModel of TensorFlow, relative to this file: it says inputs, axes and outputs, "
        "as far as the recipe does not",
        options=SavedModelOptions,
        look=_look,
        read=_read,
        is_folder=True,
        recognizes=_recognizes,
    ),
)
