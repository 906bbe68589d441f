"""The tokenizer of a decoder's prompts: files as `generate` names them, or those that are made of a GGUF file."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.data.prompts import TOKENIZER_INPUT
from onnxbuild.onnxkit.huggingface.gguf import SUFFIX
from onnxbuild.steps import generate, gguf_tokenizer


def named_tokenizer(recipe: Recipe) -> Entrypoint | None:
    """Return the files of a tokenizer as `generate` names them; None for none."""
    return recipe.entrypoints.get(generate.TOKENIZER)


def made_tokenizer(scope: Scope) -> dict[str, OutputRef]:
    """Return the input `tokenizer` of steps, where a recipe names a GGUF file as its tokenizer; else no input."""
    file = named_tokenizer(scope.recipe)
    if file is None or not _is_gguf(file):
        return {}
    step = scope.step(
        shared(scope.recipe, gguf_tokenizer.KIND.name),
        gguf_tokenizer.KIND,
        gguf_tokenizer.GgufTokenizerParams(file),
        section="generate",
    )
    return {TOKENIZER_INPUT: OutputRef(step, "tokenizer")}


def _is_gguf(file: Entrypoint) -> bool:
    return [Path(each).suffix for each in file.files] == [SUFFIX]
