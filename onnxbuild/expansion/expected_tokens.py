"""The tokens that PyTorch gives for a decoder's prompts: the gate `generate` and packages are judged by them."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.core.entrypoint import DUMMY_DATA, Entrypoint
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.data.prompts import TOKENIZER_INPUT, TextPrompts
from onnxbuild.onnxkit.huggingface.gguf import SUFFIX
from onnxbuild.steps import expected_tokens, generate, gguf_tokenizer

GENERATE = "generate"
"""Name of the section."""

PROMPTS = "prompts"


def has_prompts(recipe: Recipe) -> bool:
    """Return whether a recipe has prompts to go on with."""
    return PROMPTS in recipe.entrypoints or bool(
        recipe.section(GENERATE, generate.GenerateOptions).texts
    )


def expected_tokens_for(scope: Scope) -> OutputRef:
    """Return the tokens that PyTorch gives for a recipe's prompts, which it has."""
    recipe = scope.recipe
    options = recipe.section(GENERATE, generate.GenerateOptions)
    made = made_tokenizer(scope) if options.texts else {}
    step = scope.step(
        shared(recipe, expected_tokens.KIND.name),
        expected_tokens.KIND,
        expected_tokens.ExpectedTokensParams(
            model=recipe.model,
            inputs=recipe.inputs,
            axes=recipe.axes,
            outputs=recipe.outputs,
            prompts=recipe.entrypoints.get(PROMPTS, Entrypoint(DUMMY_DATA)),
            tokens=options.tokens,
            count=options.count,
            seed=options.seed,
            texts=TextPrompts(options.texts, recipe.entrypoints[generate.TOKENIZER])
            if options.texts
            else None,
        ),
        made,
        section=GENERATE,
    )
    return OutputRef(step, "tokens")


def named_tokenizer(recipe: Recipe) -> Entrypoint | None:
    """Return the files of a tokenizer as `generate` names them; None for none."""
    return recipe.entrypoints.get(generate.TOKENIZER)


def made_tokenizer(scope: Scope) -> dict[str, OutputRef]:
    """Return the input `tokenizer` of steps, where a recipe names a GGUF file as its tokenizer; else no input."""
    file = named_tokenizer(scope.recipe)
    if file is None or not is_gguf(file):
        return {}
    address = shared(scope.recipe, gguf_tokenizer.KIND.name)
    params = gguf_tokenizer.GgufTokenizerParams(file)
    step = scope.step(address, gguf_tokenizer.KIND, params, section=GENERATE)
    return {TOKENIZER_INPUT: OutputRef(step, "tokenizer")}


def is_gguf(file: Entrypoint) -> bool:
    """Return whether a tokenizer is in a GGUF file."""
    return [Path(each).suffix for each in file.files] == [SUFFIX]
