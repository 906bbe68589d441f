"""`model: {gguf: FILE}`: a decoder in GGUF, the form of llama.cpp's, which transformers reads; its weights get 32 bits."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxbuild.core.draft import Draft
from onnxbuild.core.params import option
from onnxbuild.core.recipe import FRONTEND
from onnxbuild.expansion.feature import SourceFormat
from onnxbuild.expansion.model_source import ModelSource, SourceFacts, source_facts
from onnxbuild.onnxkit.huggingface.folder import ModelFolder
from onnxbuild.onnxkit.huggingface.gguf import SUFFIX, read_gguf
from onnxbuild.onnxkit.huggingface.inputs import folder_outline
from onnxbuild.onnxkit.huggingface.tasks import GENERATION, purpose_of

_FACTS = {
    "task": GENERATION,
    "architecture": "",
    "outputs": ["logits"],
    "zero_padding": False,
    "allow_pickle": False,
}
"""Arguments of the loader, as those of a folder."""


@dataclass(frozen=True, slots=True)
class GgufOptions:
    """Options next to `gguf`."""

    inputs: tuple[str, ...] = option(
        (), help="those of input_ids, attention_mask and position_ids to have; left out: all"
    )


def _read(
    path: Path, model: ModelFolder, options: GgufOptions, written: Mapping[str, Any]
) -> SourceFacts:
    """Read the facts of a file for a recipe: inputs, axes, state, outputs, tolerances.

    Raises:
        SourceError: It does not say what is in the model's cache.
    """
    purpose = purpose_of(model.config, GENERATION)
    outline = folder_outline(model, purpose, options.inputs, written)
    return source_facts(path, replace(outline, files=(path,), read=(path,), facts=_FACTS), written)


def _tried(
    path: Path, _: ModelFolder, _options: GgufOptions, written: Mapping[str, Any], _scratch: Path
) -> Draft | None:
    """Return what running the model says.

    Raises:
        StepError: The model can't be loaded, or its cache can't be declared.
    """
    from onnxbuild.onnxkit.drafts.decoder_draft import draft_of_decoder  # `init` alone

    named = Path(os.path.normpath(written["model"]["gguf"])).as_posix()
    return draft_of_decoder(path, _FACTS, [named])


FEATURE = SourceFormat(
    name="gguf",
    source=ModelSource(
        words="llama_cpp ggml gguf_file",
        help="a GGUF file with a decoder of text, relative to this file: it says inputs, axes, outputs, tolerances and "
        "the state, as far as the recipe does not",
        options=GgufOptions,
        look=read_gguf,
        read=_read,
        tried=_tried,
        frontend=FRONTEND,
        suffixes=(SUFFIX,),
    ),
)
