"""The steps that let a decoder's variant continue prompts, its state going round: its own, or its pipeline's samples."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from onnxbuild.core.entrypoint import DUMMY_DATA, Entrypoint
from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Axis, Location, Recipe, Variant
from onnxbuild.core.target import Target
from onnxbuild.document.faults import Fault
from onnxbuild.expansion.addresses import of_variant, shared
from onnxbuild.expansion.fused import fused
from onnxbuild.expansion.pipelines import NAME as PIPELINE
from onnxbuild.expansion.pipelines import is_decoding, run_of_whole
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import settings_of, target_inputs
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.data.prompts import TOKENIZER_INPUT, TextPrompts
from onnxbuild.onnxkit.huggingface.gguf import SUFFIX
from onnxbuild.onnxkit.pipelines.calls import EXACT, MODEL
from onnxbuild.steps import expected_tokens, generate, gguf_tokenizer, pipeline
from onnxbuild.steps.choose import AutoOptions

SECTION = "generate"
PROMPTS, TEXTS = "prompts", "texts"


def most_divergence(recipe: Recipe, variant: Variant) -> float | None:
    """`max_kl` in force for a variant of fewer bits; None where nothing bounds it, or it must give PyTorch's tokens."""
    options = recipe.section(SECTION, generate.GenerateOptions)
    if not has_prompts(recipe) or variant.precision in generate.EXACT:
        return None
    bound = options.max_kl
    return bound.get(variant.name) if isinstance(bound, dict) else bound


def decides(recipe: Recipe, variant: Variant) -> bool:
    """Return whether a bound on what the prompts show decides on a variant of fewer bits, by `max_kl` or a search's goal."""
    options = variant.options
    searched = isinstance(options, AutoOptions) and options.goal.perplexity_ratio is not None
    return most_divergence(recipe, variant) is not None or (searched and is_generating(recipe))


def add_generation(
    scope: Scope,
    variant: Variant,
    model: OutputRef,
    target: Target,
    *,
    further: str = "",
    gates: bool = True,
) -> OutputRef | None:
    """The report of how a variant generates on a target; None if the recipe has no prompts.

    A trial of a component is judged in greedy decoding of its pipeline, all other components in fp32.

    Args:
        variant: One of the recipe's, or a trial of one.
        further: The target's name, if it is not the first.
        gates: Hold it to `generate.max_kl`; a search judges its trials itself.
    """
    recipe = scope.recipe
    options = recipe.section(SECTION, generate.GenerateOptions)
    if not has_prompts(recipe):
        return (
            None if gates or not is_decoding(recipe) else _in_whole(scope, variant, model, target)
        )
    exact = gates and variant.precision in generate.EXACT
    step = scope.step(
        of_variant(recipe, variant, SECTION, further),
        generate.KIND,
        generate.GenerateParams(
            variant=variant.name,
            precision=variant.precision,
            inputs=recipe.inputs,
            logits=recipe.outputs[0],
            batches=options.batches,
            distinct=options.distinct,
            max_kl=most_divergence(recipe, variant) if gates else None,
            target=target,
            session=settings_of(recipe, variant).judged_anywhere(),
            held_back=0 if exact else options.held_back,
            chunk=1 if exact else options.chunk,
            compares_trials=not gates,
        ),
        {
            "model": model,
            "tokens": expected_tokens_of(scope),
            **({} if exact else {"exact": fused(scope)}),
            **target_inputs(scope, target),
        },
        at=variant.location,
    )
    return OutputRef(step, "report")


def _in_whole(scope: Scope, variant: Variant, model: OutputRef, target: Target) -> OutputRef:
    recipe = scope.recipe
    whole, inputs = run_of_whole(scope, settings_of(recipe, variant).judged_anywhere())
    exact = {name: ref for name, ref in inputs.items() if name.startswith(MODEL)}
    own = {MODEL: model, EXACT: fused(scope)}
    step = scope.step(
        of_variant(recipe, variant, SECTION),
        pipeline.KIND,
        pipeline.PipelineParams(
            variant=variant.name,
            precision=variant.precision,
            parts=tuple(
                pipeline.JudgedPart(each.name, each.inputs, VariantTolerances(), each.session)
                for each in whole.parts
            ),
            components=(),
            judged_by="tokens",
            run=whole.run,
            metric=None,
            min=None,
            distinct=recipe.section(PIPELINE, pipeline.PipelineOptions).distinct,
            tolerances=VariantTolerances(),
            target=target,
        ),
        {
            **inputs,
            **{f"{EXACT}{name.removeprefix(MODEL)}": ref for name, ref in exact.items()},
            **{f"{begin}{recipe.component}": ref for begin, ref in own.items()},
            **target_inputs(scope, target),
        },
        at=variant.location,
    )
    return OutputRef(step, "report")


def is_generating(recipe: Recipe) -> bool:
    """Return whether there are tokens of PyTorch's by which variants can be compared."""
    return has_prompts(recipe) or is_decoding(recipe)


def has_prompts(recipe: Recipe) -> bool:
    """Return whether the recipe's decoder has prompts to continue."""
    options = recipe.section(SECTION, generate.GenerateOptions)
    return PROMPTS in recipe.entrypoints or bool(options.texts)


def expected_tokens_of(scope: Scope) -> OutputRef:
    """PyTorch's continuations of the recipe's prompts."""
    recipe = scope.recipe
    options = recipe.section(SECTION, generate.GenerateOptions)
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
        section=SECTION,
    )
    return OutputRef(step, "tokens")


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
        section=SECTION,
    )
    return {TOKENIZER_INPUT: OutputRef(step, "tokenizer")}


def batch_faults(
    section: str, sizes: Sequence[int], rows: int, axes: Iterable[Axis], at: Location
) -> Iterator[Fault]:
    """Yield batches that can't be made, or that a model does not take.

    Args:
        section: The section that has `batches` and `count`.
        sizes: Of the batches.
        rows: How many there are to make them of.
        axes: The axis of the batch, as each model has it.
        at: Where the sizes are written.
    """
    if not sizes:
        yield Fault(f"{section} has no batches: nothing is decoded", at, "write `batches: [1, 2]`")
    elif (most := max(sizes)) > rows:
        what = f"{section} has batches of {most} rows, and {rows} samples"
        fix = f"write smaller `batches`, or `{section}: {{count: {most}}}`"
        yield Fault(what, at, fix)
    for axis in axes:
        if other := [size for size in sizes if not axis.takes(size)]:
            what = (
                f"{section} has batches of {other[0]} rows; axis '{axis.name}' takes {axis.rule}"
            )
            fix = "write other `batches`"
            if other[0] > axis.max:
                fix += f", or `{axis.name}: {{max: {other[0]}}}` in `dynamic_axes`"
            yield Fault(what, at, fix)


def token_faults(
    section: str, tokens: int, past: Axis, at: Location, *, before: int
) -> Iterator[Fault]:
    """Yield that more tokens follow than the state has room for.

    Args:
        section: The section that has `tokens`.
        past: Axis of the elements that are there.
        at: Where the number of tokens is written.
        before: How many tokens they follow, at the least.
    """
    if (reached := before + tokens - 1) <= past.max:
        return
    what = f"after {tokens} tokens the decoder's state holds {reached}; axis '{past.name}' takes {past.rule}"
    fix = f"write `{section}: {{tokens: {max(past.max + 1 - before, 1)}}}`, or `{past.name}: {{max: {reached}}}` in `dynamic_axes`"
    yield Fault(what, at, fix)


def _is_gguf(file: Entrypoint) -> bool:
    return [Path(each).suffix for each in file.files] == [SUFFIX]
