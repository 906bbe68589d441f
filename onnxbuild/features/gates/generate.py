"""Whether a decoder, its state going round, gives the tokens that PyTorch's own `generate` gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from onnxbuild.core.graph import OutputRef
from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.expansion import cells
from onnxbuild.expansion.addresses import further, of_variant
from onnxbuild.expansion.diagnosis_hints import DiagnosisHints
from onnxbuild.expansion.expected_tokens import GENERATE, PROMPTS, expected_tokens_for, has_prompts
from onnxbuild.expansion.feature import Column, Feature, Section, Subject
from onnxbuild.expansion.fused import fused
from onnxbuild.expansion.scope import Scope
from onnxbuild.expansion.sessions import settings_of, target_inputs
from onnxbuild.onnxkit.data.greedy import RolesError, roles_of
from onnxbuild.onnxkit.data.prompts import TOKENIZER_FILE
from onnxbuild.onnxkit.huggingface.gguf import SUFFIX
from onnxbuild.steps import expected_tokens, generate, gguf_tokenizer

NAME = GENERATE
TEXTS, TOKENIZER = "texts", "tokenizer"


def _reports_on(scope: Scope, subject: Subject, number: int) -> Mapping[str, OutputRef]:
    recipe, variant, target = scope.recipe, subject.variant, scope.recipe.targets[number]
    options = recipe.section(NAME, generate.GenerateOptions)
    if not has_prompts(recipe):
        return {}
    step = scope.step(
        of_variant(recipe, variant, NAME, further(recipe, number)),
        generate.KIND,
        generate.GenerateParams(
            variant=variant.name,
            precision=variant.precision,
            inputs=recipe.inputs,
            logits=recipe.outputs[0],
            batches=options.batches,
            distinct=options.distinct,
            max_kl=options.max_kl,
            target=target,
            session=settings_of(recipe, variant).judged_anywhere(),
        ),
        {
            "model": subject.model,
            "tokens": expected_tokens_for(scope),
            **({} if variant.precision in generate.EXACT else {"exact": fused(scope)}),
            **target_inputs(scope, target),
        },
        at=variant.location,
    )
    return {f"gate/{NAME}/{target.name}": OutputRef(step, "report")}


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
    if parts.sound("state"):
        try:
            roles_of(tuple(parts.inputs.values()))
        except RolesError as error:
            fix = "declare it so, or remove `generate`"
            if parts.node("state") is None:
                fix = "declare the cache, `state: {past_key_values: {each: {layer: 4, part: [key, value]}, shape: [batch, 2, past, 32]}}`"
            yield Fault(f"{NAME} can't run this model: {error}", parts.key_at(NAME), fix)


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
    shown={generate.KIND.name: "plain"},
    diagnosis=DiagnosisHints(judges=(generate.KIND.name,)),
)
