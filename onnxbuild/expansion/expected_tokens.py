"""The tokens that PyTorch gives for a decoder's prompts: the gate `generate` and packages are judged by them."""

from __future__ import annotations

from onnxbuild.core.entrypoint import DUMMY_DATA, Entrypoint
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Recipe
from onnxbuild.expansion.addresses import shared
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.data.prompts import TextPrompts
from onnxbuild.steps import expected_tokens, generate

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
        section=GENERATE,
    )
    return OutputRef(step, "tokens")
