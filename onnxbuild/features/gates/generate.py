"""Whether a decoder, its state going round, gives the tokens that PyTorch's own `generate` gives."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from onnxbuild.core.graph import OutputRef
from onnxbuild.document.faults import Fault, choices, hinted, nearest
from onnxbuild.document.parts import Parts
from onnxbuild.expansion import cells
from onnxbuild.expansion.addresses import further
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints
from onnxbuild.expansion.feature import Column, Feature, Section, Subject
from onnxbuild.expansion.generation import (
    PROMPTS,
    TEXTS,
    add_generation,
    batch_faults,
    token_faults,
)
from onnxbuild.expansion.generation import SECTION as NAME
from onnxbuild.expansion.scope import Scope
from onnxbuild.onnxkit.data.greedy import Roles, RolesError, roles_of
from onnxbuild.onnxkit.data.prompts import TOKENIZER_FILE
from onnxbuild.onnxkit.huggingface.gguf import SUFFIX
from onnxbuild.steps import expected_tokens, generate, gguf_tokenizer

TOKENIZER = "tokenizer"


def _reports_on(scope: Scope, subject: Subject, number: int) -> Mapping[str, OutputRef]:
    recipe, target = scope.recipe, scope.recipe.targets[number]
    report = add_generation(
        scope, subject.variant, subject.model, target, further=further(recipe, number)
    )
    return {} if report is None else {f"gate/{NAME}/{target.name}": report}


def _faults(parts: Parts) -> Iterator[Fault]:
    if parts.node(NAME) is None or not parts.sound(NAME) or not parts.sound("dummy_inputs"):
        return
    has_texts = bool(parts.node(NAME, TEXTS))
    if parts.lacks(NAME, PROMPTS) and not has_texts:
        what = f"{NAME} has no {PROMPTS}; they are what is continued"
        yield Fault(
            what, parts.key_at(NAME), f"add `{PROMPTS}: dummy`, or `{PROMPTS}: FILE.py:CALLABLE`"
        )
    if has_texts and not parts.lacks(NAME, PROMPTS):
        what = f"{NAME} has {PROMPTS} and {TEXTS}; one of them is continued"
        yield Fault(what, parts.key_at(NAME, TEXTS), f"remove `{PROMPTS}` or `{TEXTS}`")
    named = parts.node(NAME, TOKENIZER)
    files = [] if named is None else [str(each.value) for each in named.items]
    is_made = [Path(each).suffix for each in files] == [SUFFIX]
    if (has_texts or files) and not (
        is_made or any(Path(each).name == TOKENIZER_FILE for each in files)
    ):
        what = f"{NAME} names no {TOKENIZER_FILE}, which makes ids of texts"
        place = TOKENIZER if files else TEXTS
        yield Fault(
            what, parts.key_at(NAME, place), f"add `{TOKENIZER}: [FOLDER/{TOKENIZER_FILE}]`"
        )
    yield from _unknown_variants(parts)
    if parts.sound("state"):
        try:
            roles = roles_of(tuple(parts.inputs.values()))
        except RolesError as error:
            fix = "declare it so, or remove `generate`"
            if parts.node("state") is None:
                fix = "declare the cache, `state: {past_key_values: {each: {layer: 4, part: [key, value]}, shape: [batch, 2, past, 32]}}`"
            yield Fault(f"{NAME} can't run this model: {error}", parts.key_at(NAME), fix)
        else:
            yield from _size_faults(parts, roles)
            yield from _too_long_calls(parts, roles)


def _size_faults(parts: Parts, roles: Roles) -> Iterator[Fault]:
    """Batches that can't be made, and more tokens than the state has room for."""
    options = parts.sections.get(NAME)
    assert isinstance(options, generate.GenerateOptions)
    rows = min(options.count, len(options.texts)) if options.texts else options.count
    sizes = options.batches if parts.node(NAME, "batches") else (1,)
    axis = parts.axes.get(str(roles.tokens.shape[0]))
    at = parts.at(NAME, "batches")
    yield from batch_faults(NAME, sizes, rows, () if axis is None else (axis,), at)
    past = parts.axes.get(roles.growth.axis) if roles.growth else None
    if past is not None:
        yield from token_faults(NAME, options.tokens, past, parts.at(NAME, "tokens"), before=1)


def _too_long_calls(parts: Parts, roles: Roles) -> Iterator[Fault]:
    """Chunks that one call does not take, and those of nothing."""
    options = parts.sections.get(NAME)
    assert isinstance(options, generate.GenerateOptions)
    if options.chunk > 1 and not options.held_back:
        what = f"{NAME}.chunk is how many tokens of `held_back` go into one call, and none is held back"
        fix = "add `held_back: 96`, or remove `chunk`"
        yield Fault(what, parts.at(NAME, "chunk"), fix)
    by = (roles.growth and roles.growth.by) or ""
    axis = parts.axes.get(by)
    most = 1 if axis is None else axis.max
    if options.chunk <= most or (by and axis is None):
        return
    what = f"{NAME}.chunk is {options.chunk}; one call takes {most} new tokens at most"
    fix = f"write `chunk: {most}`"
    if axis is not None:
        fix += f", or `{axis.name}: {{max: {options.chunk}}}` in `dynamic_axes`"
    yield Fault(what, parts.at(NAME, "chunk"), fix)


def _unknown_variants(parts: Parts) -> Iterator[Fault]:
    """Bounds of variants that the recipe does not have."""
    bounds, variants = parts.node(NAME, "max_kl"), parts.declared("quantization")
    for name, member in {} if bounds is None else bounds.members.items():
        if variants and name not in variants:
            near = nearest(name, variants)
            what = f"{NAME}.max_kl names '{name}', which is no variant"
            fix = f"write `{near}`" if near else "write a variant's name, or one number for all"
            yield Fault(hinted(what, near, f"expected {choices(variants)}"), member.at, fix)


FEATURE = Feature(
    name=NAME,
    sections=(
        Section(
            name=NAME,
            options=generate.GenerateOptions,
            callables={
                PROMPTS: (
                    PROMPTS,
                    (
                        "prompts: a callable that yields arrays of token ids, shape [length]; .npy files with one "
                        "each; or `dummy` for random ones"
                    ),
                )
            },
            files=(PROMPTS,),
            below={TOKENIZER: "files"},
            needs_onnx="tokens are those of ONNX models",
            words="decode greedy generation",
        ),
    ),
    kinds=(expected_tokens.KIND, gguf_tokenizer.KIND, generate.KIND),
    faults=_faults,
    reports_on=_reports_on,
    columns=(
        Column("tokens", NAME, cells.number("equal", 4), place=82, if_any=True),
        Column("KL", NAME, cells.number("kl", 5), place=84, if_any=True),
    ),
    shown={generate.KIND.name: "whole"},
    diagnosis=DiagnosisHints(judges=(generate.KIND.name,), answers={"perplexity_ratio": NAME}),
)
