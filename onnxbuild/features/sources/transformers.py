"""`model: {transformers: FOLDER}`: a model as transformers' `save_pretrained` or the hub's cache leaves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.params import option
from onnxbuild.core.recipe import FRONTEND
from onnxbuild.expansion.feature import SourceFormat
from onnxbuild.expansion.model_source import ModelSource, SourceFacts
from onnxbuild.onnxkit.data.completed_axes import completed_axes, mapping_in
from onnxbuild.onnxkit.huggingface.folder import (
    CONFIG,
    ModelFolder,
    declared_weights,
    is_model_folder,
    read_folder,
)
from onnxbuild.onnxkit.huggingface.tasks import TASKS, purpose_of


@dataclass(frozen=True, slots=True)
class TransformersOptions:
    """Options next to `transformers`."""

    task: str = option(
        "",
        help=f"what the model is for: {', '.join(TASKS)}; left out: what `architectures` in {CONFIG} says",
    )
    inputs: tuple[str, ...] = option(
        (), help="those of the task's inputs that the model is to have; left out: all of them"
    )
    zero_padding: bool = option(
        False,
        help="feature-extraction of text: 0 at padded positions (attention_mask 0), instead of the "
        "model's values there, which mean nothing and which 8 bits change much",
    )
    allow_pickle: bool = option(
        False, help="load weights that are a pickle, where there are no others: a program may run"
    )


def _look(path: Path) -> ModelFolder:
    """Return the outline of a model's folder.

    Raises:
        SourceError: It holds no model that can be loaded.
        OSError: It can't be read.
    """
    return read_folder(path)


def _read(
    _: Path, folder: ModelFolder, options: TransformersOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """Read the facts of a folder for a recipe: inputs, axes, outputs, tolerances, files of weights.

    Raises:
        SourceError: It does not say the task, or that is none of one graph; or its weights are a pickle.
    """
    from onnxbuild.onnxkit.huggingface.inputs import check_zero_padding, declared_inputs, shapes_of

    purpose = purpose_of(folder.config, options.task)
    weights = declared_weights(folder, allow_pickle=options.allow_pickle)
    own = mapping_in(written, "dummy_inputs")
    known = declared_inputs(folder, purpose, options.inputs, own)
    if options.zero_padding:
        check_zero_padding(purpose, {*known.inputs, *own})
    shapes = shapes_of(known.inputs, own)
    axes = completed_axes(shapes, mapping_in(written, "dynamic_axes"), known.axes)
    recipe = {
        "dummy_inputs": known.inputs,
        "dynamic_axes": axes,
        "outputs": list(purpose.outputs),
        "validate": purpose.tolerances,
    }
    facts = {
        "task": purpose.task.name,
        "architecture": purpose.architecture,
        "outputs": list(purpose.outputs),
        "zero_padding": options.zero_padding,
        "allow_pickle": not folder.weights,
    }
    said = {key: value for key, value in recipe.items() if value}
    return SourceFacts((folder.path / CONFIG, *weights), folder.read, said, facts)


def _comments(path: Path) -> Mapping[str, str]:
    """Say what sentence-transformers does with the outputs."""
    from onnxbuild.onnxkit.huggingface.sentence_embedding import embedding_comment

    said = embedding_comment(read_folder(path).path)
    return {"outputs": said} if said else {}


FEATURE = SourceFormat(
    name="transformers",
    source=ModelSource(
        words="huggingface hf hugging_face hub pretrained",
        help="a folder that transformers' `save_pretrained` wrote or the hub's cache holds, relative "
        "to this file or `package:NAME/FOLDER`: it says inputs, axes, outputs and tolerances, as far as "
        "the recipe does not",
        options=TransformersOptions,
        look=_look,
        read=_read,
        frontend=FRONTEND,
        is_folder=True,
        recognizes=is_model_folder,
        comments=_comments,
    ),
)
