"""`model: {transformers: FOLDER}`: a model as transformers' `save_pretrained` or the hub's cache leaves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.params import option
from onnxbuild.core.recipe import FRONTEND
from onnxbuild.expansion.model_source import ModelSource, SourceError, SourceFacts
from onnxbuild.expansion.source_format import SourceFormat
from onnxbuild.onnxkit.huggingface.folder import (
    CONFIG,
    FolderError,
    ModelFolder,
    declared_weights,
    is_model_folder,
    read_folder,
)
from onnxbuild.onnxkit.huggingface.inputs import inputs_of
from onnxbuild.onnxkit.huggingface.load import SOURCE
from onnxbuild.onnxkit.huggingface.tasks import TASKS, purpose_of
from onnxbuild.onnxkit.ready_onnx.declared import completed_axes


@dataclass(frozen=True, slots=True)
class TransformersOptions:
    """What may stand next to `transformers`."""

    task: str = option(
        "",
        help=f"what the model is for: {', '.join(TASKS)}; left out: what `architectures` in {CONFIG} says",
    )
    inputs: tuple[str, ...] = option(
        (), help="those of the task's inputs that the model is to have; left out: all of them"
    )
    zero_padding: bool = option(
        False,
        help="feature-extraction of text: 0 where attention_mask is, in place of what the model leaves "
        "there, which nobody reads and 8 bits change freely",
    )
    allow_pickle: bool = option(
        False, help="load weights that are a pickle, where there are no others: a program may run"
    )


def _look(path: Path) -> ModelFolder:
    try:
        return read_folder(path)
    except FolderError as error:
        raise SourceError(str(error), error.fix, error.key) from error


def _read(
    path: Path, folder: ModelFolder, options: TransformersOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """What a folder says: inputs, axes, outputs, tolerances, files of weights.

    Raises:
        SourceError: It does not say the task, or that comes later; or its weights are a pickle.
    """
    del path
    try:
        return _facts(folder, options, written)
    except FolderError as error:
        raise SourceError(str(error), error.fix, error.key) from error


def _facts(
    folder: ModelFolder, options: TransformersOptions, written: Mapping[str, Any]
) -> SourceFacts:
    purpose = purpose_of(folder.config, options.task)
    weights = declared_weights(folder, allow_pickle=options.allow_pickle)
    own = _mapping(written, "dummy_inputs")
    inputs: dict[str, Mapping[str, Any]] = {}
    sizes: Mapping[str, Mapping[str, int]] = {}
    if purpose.modality is not None or not own:
        known = inputs_of(folder, purpose)
        inputs, sizes = _chosen(known.inputs, options.inputs), known.axes
        inputs = {name: _below(each, _mapping(own, name)) for name, each in inputs.items()}
    if options.zero_padding and (
        purpose.task.name != "feature-extraction" or "attention_mask" not in {**inputs, **own}
    ):
        raise FolderError(
            "`zero_padding` is for feature-extraction of text with an `attention_mask`",
            "remove it",
            "model", "zero_padding",
        )  # fmt: skip
    shapes = [
        _mapping(own, name).get("shape", inputs.get(name, {}).get("shape"))
        for name in {**inputs, **own}
    ]
    axes = completed_axes(
        [each if isinstance(each, list) else [] for each in shapes],
        _mapping(written, "dynamic_axes"),
        sizes,
    )
    recipe = {
        **({"dummy_inputs": inputs} if inputs else {}),
        **({"dynamic_axes": axes} if axes else {}),
        "outputs": list(purpose.outputs),
        **({"validate": purpose.tolerances} if purpose.tolerances else {}),
    }
    facts = {
        "source": SOURCE,
        "task": purpose.task.name,
        "architecture": purpose.architecture,
        "outputs": list(purpose.outputs),
        "zero_padding": options.zero_padding,
        "allow_pickle": not folder.weights,
    }
    return SourceFacts((folder.path / CONFIG, *weights), folder.read, recipe, facts)


def _chosen(
    inputs: Mapping[str, Mapping[str, Any]], names: tuple[str, ...]
) -> dict[str, Mapping[str, Any]]:
    for name in names:
        if name not in inputs:
            raise FolderError(
                f"`inputs` names '{name}', which is no input of the task",
                f"it has {', '.join(inputs)}; others stand under `dummy_inputs`",
                "model", "inputs",
            )  # fmt: skip
    return {name: inputs[name] for name in names or inputs}


def _below(known: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of an input, without the ways to draw its values that the recipe's own rules out."""
    kinds = (("fill",), ("mask",), ("low", "high"))
    if not any(key in own for kind in kinds for key in kind):
        return dict(known)
    others = {key for kind in kinds if not own.keys() & kind for key in kind}
    return {key: value for key, value in known.items() if key not in others}


def _mapping(written: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = written.get(key)
    return value if isinstance(value, Mapping) else {}


FEATURE = SourceFormat(
    name=SOURCE,
    source=ModelSource(
        help="a folder that transformers' `save_pretrained` wrote or the hub's cache holds, relative "
        "to this file or `package:NAME/FOLDER`: it says inputs, axes, outputs and tolerances, as far as "
        "the recipe does not",
        options=TransformersOptions,
        look=_look,
        read=_read,
        frontend=FRONTEND,
        is_folder=True,
        recognizes=is_model_folder,
    ),
)
