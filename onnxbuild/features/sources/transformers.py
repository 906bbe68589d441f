"""`model: {transformers: FOLDER}`: a model as transformers' `save_pretrained` or the hub's cache leaves it."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxbuild.core.draft import Draft
from onnxbuild.core.errors import listed
from onnxbuild.core.params import option
from onnxbuild.core.recipe import FRONTEND
from onnxbuild.core.source_error import SourceError
from onnxbuild.expansion.feature import SourceFormat
from onnxbuild.expansion.model_source import ModelSource, SourceFacts, source_facts
from onnxbuild.onnxkit.data.prompts import TOKENIZER_FILE, TOKENIZER_FILES
from onnxbuild.onnxkit.huggingface import encoder_decoders, images_and_text
from onnxbuild.onnxkit.huggingface.folder import (
    CONFIG,
    GENERATION_CONFIG,
    ModelFolder,
    declared_weights,
    embedding_comment,
    is_model_folder,
    read_folder,
)
from onnxbuild.onnxkit.huggingface.inputs import (
    check_zero_padding,
    folder_outline,
    frames_of,
    sound_of,
)
from onnxbuild.onnxkit.huggingface.tasks import (
    CTC,
    GENERATION,
    IMAGES_AND_TEXT,
    PARTS,
    TASKS,
    Purpose,
    purpose_of,
)
from onnxbuild.onnxkit.sources.parts import mapping_in


@dataclass(frozen=True, slots=True)
class TransformersOptions:
    """Options next to `transformers`."""

    task: str = option(
        "",
        help=f"what the model is for: {', '.join(TASKS)}; left out: what `architectures` in {CONFIG} says",
    )
    part: str = option(
        "",
        help="; ".join(f"{listed(parts, 'or')} of {task}" for task, parts in PARTS.items())
        + ": that part alone, as a component; left out: all are components",
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


def _read(
    path: Path, folder: ModelFolder, options: TransformersOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """Read the facts of a folder for a recipe: inputs, axes, outputs, tolerances, files of weights.

    Raises:
        SourceError: It does not say the task, or that is none of one graph; or its weights are a pickle.
    """
    purpose = purpose_of(folder.config, options.task)
    _check_part(purpose, options.part)
    weights = declared_weights(folder, allow_pickle=options.allow_pickle)
    own = mapping_in(written, "dummy_inputs")
    outline = folder_outline(folder, purpose, options.inputs, written, options.part)
    if options.zero_padding:
        check_zero_padding(purpose, {*(each.name for each in outline.inputs), *own})
    said = embedding_comment(folder.path)
    outline = replace(
        outline,
        files=(folder.path / CONFIG, *weights, *_generation_config(folder, purpose)),
        read=tuple(folder.read),
        facts=_facts(folder, purpose, options),
        notes={"outputs": said} if said else {},
    )
    return source_facts(path, outline, written)


def _generation_config(folder: ModelFolder, purpose: Purpose) -> tuple[Path, ...]:
    """The file that transformers also opens as it loads a model that writes text, if it is there."""
    file = folder.path / GENERATION_CONFIG
    writes_text = purpose.task.name in (GENERATION, *PARTS)
    return (file,) if writes_text and file.is_file() else ()


def _check_part(purpose: Purpose, part: str) -> None:
    """Check that a model with several parts names one of them, and any other none.

    Raises:
        SourceError: It does not.
    """
    parts = PARTS.get(purpose.task.name, ())
    if parts and part not in parts:
        each = [f"{'an' if name[0] in 'aeiou' else 'a'} {name}" for name in parts]
        what = (
            f"part is '{part}'"
            if part
            else f"the model has {listed(each, 'and')}, which are {len(parts)} graphs"
        )
        others = listed([f"`part: {name}`" for name in parts[1:]], "and")
        raise SourceError(
            what + f"; expected {listed(parts, 'or')}",
            f"write `part: {parts[0]}` here and components with {others}; or `model` next to `components`, "
            "and all are there",
            "model", *(("part",) if part else ()),
        )  # fmt: skip
    if part and not parts:
        what = f"`part` is for a model of several graphs; the task here is {purpose.task.name}"
        raise SourceError(what, "remove it", "model", "part")


def _components(
    path: Path, folder: ModelFolder, options: TransformersOptions, written: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the components of a model with several parts, or of one for CTC with a `pipeline`; nothing for any other.

    Raises:
        SourceError: The folder does not say what it is for.
    """
    purpose = purpose_of(folder.config, options.task)
    model = written["model"]
    if purpose.task.name == CTC and "pipeline" in written:
        found = _ctc(model, folder)
    elif options.part or purpose.task.name not in PARTS:
        return {}
    elif purpose.task.name == IMAGES_AND_TEXT:
        found = images_and_text.components(model, folder.config)
    else:
        found = encoder_decoders.components(model, folder.config, folder.generation)
    tokenizer = _tokenizer(path, folder, written)
    if not tokenizer and purpose.task.name == CTC:
        tokenizer = _named(path, folder, written, ("vocab.json",))
    if tokenizer:
        found["pipeline"]["tokenizer"] = tokenizer
    if sound := sound_of(folder):
        found["pipeline"]["sound"] = sound
    return found


def _ctc(model: Mapping[str, Any], folder: ModelFolder) -> dict[str, Any]:
    field, stride = frames_of(folder.config)
    said = {"blank": folder.config.get("pad_token_id") or 0, "receptive_field": field}
    return {
        "components": {"acoustic": {"model": dict(model)}},
        "pipeline": {"run": "ctc", "samples": "dummy", **said, "stride": stride},
    }


def _tried(
    path: Path,
    folder: ModelFolder,
    options: TransformersOptions,
    written: Mapping[str, Any],
    _scratch: Path,
) -> Draft | None:
    """Return what running a model that writes text says; None for any other, whose config says all.

    Raises:
        StepError: The model can't be loaded, or its cache can't be declared.
    """
    purpose = purpose_of(folder.config, options.task)
    if purpose.task.name != GENERATION:
        return None
    from onnxbuild.onnxkit.drafts.decoder_draft import draft_of_decoder  # `init` alone

    tokenizer = _tokenizer(path, folder, written)
    return draft_of_decoder(folder.path / CONFIG, _facts(folder, purpose, options), tokenizer)


def _tokenizer(path: Path, folder: ModelFolder, written: Mapping[str, Any]) -> list[str]:
    """The files of a tokenizer, as the recipe names them; none without tokenizer.json."""
    is_there = (folder.path / TOKENIZER_FILE).is_file()
    return _named(path, folder, written, TOKENIZER_FILES) if is_there else []


def _named(
    path: Path, folder: ModelFolder, written: Mapping[str, Any], names: Sequence[str]
) -> list[str]:
    """Files of the folder as the recipe names them; none in an installed package."""
    model = written["model"]["transformers"]
    if model.startswith("package:"):
        return []
    home = Path(model, os.path.relpath(folder.path, path)).as_posix()
    there = [name for name in names if (folder.path / name).is_file()]
    return [Path(os.path.normpath(f"{home}/{name}")).as_posix() for name in there]


def _facts(folder: ModelFolder, purpose: Purpose, options: TransformersOptions) -> dict[str, Any]:
    return {
        "task": purpose.task.name,
        "architecture": purpose.architecture,
        "outputs": list(purpose.outputs),
        "zero_padding": options.zero_padding,
        "allow_pickle": not folder.weights,
        **({"part": options.part} if options.part else {}),
    }


FEATURE = SourceFormat(
    name="transformers",
    source=ModelSource(
        words="huggingface hf hugging_face hub pretrained",
        help="a folder that transformers' `save_pretrained` wrote or the hub's cache holds, relative "
        "to this file or `package:NAME/FOLDER`: it says inputs, axes, outputs, tolerances and a decoder's state, as "
        "far as the recipe does not",
        options=TransformersOptions,
        look=read_folder,
        read=_read,
        tried=_tried,
        components=_components,
        frontend=FRONTEND,
        is_folder=True,
        recognizes=is_model_folder,
    ),
)
