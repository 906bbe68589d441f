"""Continue prompts greedily with a variant, its state going round, and compare the tokens with PyTorch's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.recipe import DummyInput, Precision
from onnxbuild.core.step import REPORT_FILE, Finding, Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.accuracy.divergence import TokenDivergence, too_far
from onnxbuild.onnxkit.data.greedy import Roles, roles_of
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.loaders.decoding import decode
from onnxbuild.onnxkit.providers.open_on_target import NotOnTargetError, absence, open_on, skipped
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.decoding import decoding_run
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings

if TYPE_CHECKING:
    from onnxbuild.onnxkit.data.states import Feeds, Run

TOKENIZER = "generate.tokenizer"
"""Name of a recipe's files of a tokenizer in Recipe.entrypoints."""

EXACT = ("fp32", "fp16")
"""Precisions whose tokens must be PyTorch's own."""

_FIX = (
    "compare single calls: `onnxbuild diagnose RECIPE:VARIANT`, and `validate` at more points of the state's axis, "
    "`reference: {points: [...]}`"
)


@dataclass(frozen=True, slots=True)
class GenerateOptions:
    """Prompts that every variant continues greedily, with its state going round, as PyTorch does."""

    texts: tuple[str, ...] = option((), help="prompts as texts, in place of `prompts`")
    tokenizer: tuple[str, ...] = field(
        default=(),
        compare=False,  # the files are in Recipe.entrypoints, whatever they are relative to
        metadata={
            "help": "tokenizer.json, and next to it tokenizer_config.json, chat_template.jinja and generation_config.json, "
            "or a GGUF file, relative to this file or `package:NAME/PATH`; they make ids of `texts`, and go with a run.py into the bundle"
        },
    )
    tokens: int = option(32, help="how many tokens follow each prompt", minimum=1)
    count: int = option(8, help="how many of the prompts are used", minimum=1)
    batches: tuple[int, ...] = option(
        (1, 2), help="sizes of batches to try; prompts in one are padded on their left", minimum=1
    )
    distinct: int = option(
        8,
        help="different tokens that PyTorch must give at the least: a model that repeats one token would hide every fault",
        minimum=1,
    )
    held_back: int = option(
        0,
        help="how many of the last tokens of each prompt variants of fewer bits are judged on, in place of PyTorch's own "
        "continuation: its perplexity is that of your text then",
        minimum=0,
    )
    chunk: int = option(
        1,
        help="how many tokens of `held_back` go into one call, each on the state that the last call left; 1 is slow, and as "
        "in decoding: activations that are rounded together, as in `mode: dynamic`, are rounded more coarsely in longer calls",
        minimum=1,
    )
    seed: int = option(0, help="seed of the random prompts of `prompts: dummy`", minimum=0)
    max_kl: float | dict[str, float] | None = option(
        None,
        help="most mean KL divergence, in nats, of a variant of fewer bits from the fp32 model, on PyTorch's own tokens: "
        "one number, or one by variant (`{int8: 0.005, int4: 0.02}`). Where it is bounded, it decides, and `validate` on "
        "random inputs only warns; variants in fp32 and fp16 must give these tokens",
        minimum=0,
    )


@dataclass(frozen=True, slots=True)
class GenerateParams:
    """Parameters of the comparison.

    Attributes:
        logits: Name of the output.
        batches, distinct, held_back, chunk: As in GenerateOptions.
        max_kl: This variant's.
        compares_trials: The divergence is measured whatever the precision: a search compares its trials by it.
    """

    variant: str
    precision: Precision
    inputs: tuple[DummyInput, ...]
    logits: str
    batches: tuple[int, ...]
    distinct: int
    max_kl: float | None
    target: Target
    session: SessionSettings = field(default_factory=SessionSettings)
    held_back: int = field(default=0, metadata={"sparse": True})
    chunk: int = field(default=1, metadata={"sparse": True})
    compares_trials: bool = field(default=False, metadata={"sparse": True})

    @property
    def is_exact(self) -> bool:
        """Whether the model must give PyTorch's tokens."""
        return self.precision in EXACT and not self.compares_trials


@dataclass(frozen=True, slots=True)
class _Batch:
    """Prompts that are continued together, and the tokens that follow each, shape (prompts, tokens)."""

    numbers: tuple[int, ...]
    prompts: tuple[np.ndarray, ...]
    tokens: np.ndarray


def run(context: StepContext) -> Outcome:
    """Write report.json; other tokens than PyTorch's are findings, and so are too few different ones.

    A variant of fewer bits is fed PyTorch's tokens, or a text's own, and how far its next token's distribution is from that of `exact`, the
    fp32 model, is measured: free decoding would rank variants by their first near tie.

    Raises:
        StepError: The target refuses the model.
    """
    params: GenerateParams = context.params
    if reason := absence(context):
        return skipped(context, params.target, reason)
    try:
        session = open_on(
            context, context.input("model"), params.target, params.session.judged_anywhere()
        ).session
    except NotOnTargetError as error:
        return skipped(context, params.target, str(error))
    expected = json.loads((context.input("tokens") / REPORT_FILE).read_text("utf-8"))
    roles = roles_of(params.inputs)
    texts = _texts(context, expected)
    batches = [each for size in params.batches for each in _batches(texts, size, roles)]

    rows: list[dict[str, Any]] = []
    room = max(map(len, expected["prompts"])) + max(map(len, expected["tokens"]))
    model = decoding_run(session, params.inputs, room, context.where)
    if params.is_exact:
        metrics, findings = _compare(context, model, roles, batches)
    else:
        metrics, findings, rows = _measure(context, model, roles, batches)
    if not metrics["compared"]:
        findings += (_nothing(params, len(expected["prompts"])),)
    distinct = len({token for each in expected["tokens"] for token in each})
    if distinct < params.distinct:
        findings += (
            Finding(
                f"PyTorch gives {distinct} different tokens, fewer than {params.distinct}: equal tokens say nothing",
                f"variant '{params.variant}'",
                "name prompts of your own in `generate: {prompts: ...}`, take trained weights, or lower `distinct`",
            ),
        )
    report = {
        "variant": params.variant,
        "provider": params.target.name,
        "by": expected["by"],
        "prompts": len(expected["prompts"]),
        "distinct": distinct,
        "passed": not findings,
        **metrics,
        **({"by_prompt": rows} if rows else {}),
    }
    write_report(context.output("report"), report)
    return Outcome(metrics | {"distinct": distinct}, findings, _notes(roles, params.batches))


def _texts(context: StepContext, expected: dict[str, Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Each prompt, and what follows it: PyTorch's tokens, or the tokens that are held back from it.

    Raises:
        StepError: A prompt has no more tokens than are held back.
    """
    params: GenerateParams = context.params
    prompts = [np.array(each) for each in expected["prompts"]]
    count = 0 if params.is_exact else params.held_back
    if not count:
        return list(zip(prompts, map(np.array, expected["tokens"]), strict=True))
    for n, each in enumerate(prompts):
        if len(each) <= count:
            raise StepError(
                f"prompt {n} has {len(each)} tokens, and {count} are held back: none is left to begin with",
                where=context.where,
                fix="yield longer prompts, or lower `generate: {held_back: ...}`",
            )
    return [(each[:-count], each[-count:]) for each in prompts]


def _batches(
    texts: Sequence[tuple[np.ndarray, np.ndarray]], size: int, roles: Roles
) -> Iterator[_Batch]:
    """The prompts in groups of a size, the last ones left out; without padding, those of one length alone."""
    prompts = [each for each, _ in texts]
    groups: dict[int, list[int]] = {}
    for n, each in enumerate(prompts):
        groups.setdefault(0 if roles.takes_padding else len(each), []).append(n)
    for numbers in groups.values():
        for start in range(0, len(numbers) - size + 1, size):
            chosen = tuple(numbers[start : start + size])
            tokens = np.stack([texts[n][1] for n in chosen])
            yield _Batch(chosen, tuple(prompts[n] for n in chosen), tokens)


def _compare(
    context: StepContext, model: Run, roles: Roles, batches: Sequence[_Batch]
) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """The share of tokens that are PyTorch's, and the first that is another."""
    params: GenerateParams = context.params
    decoder = roles.decoder(params.logits)
    equal = total = 0
    first = ""
    for each in counted(batches, "batches"):
        steps = list(decode(model, decoder, each.prompts, each.tokens.shape[1]))
        found = np.stack([last.argmax(-1) for last in steps], axis=1)
        same = found == each.tokens
        equal, total = equal + int(same.sum()), total + same.size
        if not same.all() and not first:
            row, place = (int(n) for n in np.argwhere(~same)[np.argwhere(~same)[:, 1].argmin()])
            found_token, token = int(found[row, place]), int(each.tokens[row, place])
            gap = float(steps[place][row, found_token]) - float(steps[place][row, token])
            first = (
                f"token {place} after prompt {each.numbers[row]} (batch {len(each.numbers)}) is {found_token} instead of "
                f"{token}, their logits {gap:.3g} apart"
            )
    metrics: dict[str, Any] = {"equal": equal / total if total else None, "compared": total}
    if not first:
        return metrics, ()
    what = f"{total - equal} of {total} tokens are not PyTorch's: {first}"
    return metrics, (Finding(what, f"variant '{params.variant}'", _FIX),)


def _measure(
    context: StepContext, model: Run, roles: Roles, batches: Sequence[_Batch]
) -> tuple[dict[str, Any], tuple[Finding, ...], list[dict[str, Any]]]:
    """Mean KL divergence from the fp32 model, top-1 agreement with it and ratio of perplexities, on the tokens that follow.

    Returns: These, findings, and the same by prompt.
    """
    params: GenerateParams = context.params
    exact = open_session(context.input("exact"), where=context.where)

    def reference(feeds: Feeds) -> dict[str, np.ndarray]:
        return run_session(exact, feeds, context.where)

    found = TokenDivergence()
    decoder = roles.decoder(params.logits)
    at_once = params.chunk if params.held_back else 1
    for each in counted(batches, "batches"):
        count = each.tokens.shape[1]
        runs = (
            decode(run, decoder, each.prompts, count, forced=each.tokens, at_once=at_once)
            for run in (reference, model)
        )
        found.add(runs, each.tokens, each.numbers)
    metrics, rows = found.metrics(), found.by_prompt()
    if not (what := too_far(metrics["kl"], params.max_kl)):
        return metrics, (), rows
    fix = "leave the nodes that cost most in fp32 (`onnxbuild diagnose RECIPE:VARIANT`), or raise `generate: {max_kl: ...}`"
    return metrics, (Finding(what, f"variant '{params.variant}'", fix),), rows


def _nothing(params: GenerateParams, prompts: int) -> Finding:
    """A gate that compared no token has not passed."""
    sizes = ", ".join(map(str, params.batches))
    return Finding(
        f"no token was compared: {prompts} prompts make no batch of {sizes}",
        f"variant '{params.variant}'",
        "yield more prompts, of one length where no input masks the past, or write `generate: {batches: [1]}`",
    )


def _notes(roles: Roles, batches: Sequence[int]) -> tuple[str, ...]:
    if roles.takes_padding or max(batches) == 1:
        return ()
    return (
        "no input masks the past, so that prompts of different lengths were not tried in one batch",
    )


KIND = StepKind(
    name="generate",
    version=3,
    params=GenerateParams,
    inputs=("model", "tokens", "exact?", "target?"),
    outputs={"report": "report"},
    toolchain=("onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    entrypoints=lambda params: params.target.entrypoints,
)
