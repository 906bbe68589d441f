"""Continue prompts greedily with a variant, its state going round, and compare the tokens with PyTorch's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from onnxbuild.core.params import option
from onnxbuild.core.recipe import DummyInput, Precision
from onnxbuild.core.step import REPORT_FILE, Finding, Outcome, StepContext, StepKind
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.data.greedy import Roles, decode, roles_of
from onnxbuild.onnxkit.host.progress import counted
from onnxbuild.onnxkit.providers.open_on_target import NotOnTargetError, absence, open_on, skipped
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session
from onnxbuild.onnxkit.sessions.settings import SessionSettings

if TYPE_CHECKING:
    import numpy as np

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
            "or a GGUF file, relative to this file; they make ids of `texts`, and go with a run.py into the bundle"
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
    seed: int = option(0, help="seed of the random prompts of `prompts: dummy`", minimum=0)
    max_kl: float | None = option(
        None,
        help="most mean KL divergence, in nats, of a variant of fewer bits from the fp32 model, on PyTorch's own tokens; "
        "those of fp32 and fp16 must give these tokens",
        minimum=0,
    )


@dataclass(frozen=True, slots=True)
class GenerateParams:
    """Parameters of the comparison.

    Attributes:
        logits: Name of the output.
        batches, distinct, max_kl: As in GenerateOptions.
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


@dataclass(frozen=True, slots=True)
class _Batch:
    """Prompts that are continued together, and PyTorch's tokens for each, shape (prompts, tokens)."""

    numbers: tuple[int, ...]
    prompts: tuple[np.ndarray, ...]
    tokens: np.ndarray


def run(context: StepContext) -> Outcome:
    """Write report.json; other tokens than PyTorch's are findings, and so are too few different ones.

    A variant of fewer bits is fed PyTorch's tokens, and how far its next token's distribution is from that of `exact`, the
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
    batches = [each for size in params.batches for each in _batches(expected, size, roles)]

    def model(feeds: Feeds) -> dict[str, np.ndarray]:
        return run_session(session, feeds, context.where)

    if params.precision in EXACT:
        metrics, findings = _compare(context, model, roles, batches)
    else:
        metrics, findings = _measure(context, model, roles, batches)
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
    }
    write_report(context.output("report"), report)
    return Outcome(metrics | {"distinct": distinct}, findings, _notes(roles, params.batches))


def _batches(expected: dict[str, Any], size: int, roles: Roles) -> Iterator[_Batch]:
    """The prompts in groups of a size, the last ones left out; without padding, those of one length alone."""
    import numpy as np

    prompts = [np.array(each) for each in expected["prompts"]]
    groups: dict[int, list[int]] = {}
    for n, each in enumerate(prompts):
        groups.setdefault(0 if roles.takes_padding else len(each), []).append(n)
    for numbers in groups.values():
        for start in range(0, len(numbers) - size + 1, size):
            chosen = tuple(numbers[start : start + size])
            tokens = np.array([expected["tokens"][n] for n in chosen])
            yield _Batch(chosen, tuple(prompts[n] for n in chosen), tokens)


def _compare(
    context: StepContext, model: Run, roles: Roles, batches: Sequence[_Batch]
) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """The share of tokens that are PyTorch's, and the first that is another."""
    import numpy as np

    params: GenerateParams = context.params
    equal = total = 0
    first = ""
    for each in counted(batches, "batches"):
        steps = list(
            decode(model, roles, each.prompts, each.tokens.shape[1], logits=params.logits)
        )
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
    metrics = {"equal": equal / total if total else None, "compared": total}
    if not first:
        return metrics, ()
    what = f"{total - equal} of {total} tokens are not PyTorch's: {first}"
    return metrics, (Finding(what, f"variant '{params.variant}'", _FIX),)


def _measure(
    context: StepContext, model: Run, roles: Roles, batches: Sequence[_Batch]
) -> tuple[dict[str, Any], tuple[Finding, ...]]:
    """Mean KL divergence from the fp32 model, top-1 agreement with it and ratio of perplexities, on PyTorch's tokens."""
    import numpy as np

    params: GenerateParams = context.params
    exact = open_session(context.input("exact"), where=context.where)

    def reference(feeds: Feeds) -> dict[str, np.ndarray]:
        return run_session(exact, feeds, context.where)

    divergences: list[float] = []
    losses: list[float] = []
    agreed = 0
    for each in counted(batches, "batches"):
        count = each.tokens.shape[1]
        runs = (
            decode(run, roles, each.prompts, count, logits=params.logits, forced=each.tokens)
            for run in (reference, model)
        )
        for n, pair in enumerate(zip(*runs, strict=True)):
            theirs, own = (_log_softmax(logits) for logits in pair)
            divergences += (np.exp(theirs) * (theirs - own)).sum(-1).tolist()
            agreed += int((theirs.argmax(-1) == own.argmax(-1)).sum())
            rows = np.arange(len(own))
            losses += (theirs - own)[rows, each.tokens[:, n]].tolist()
    total = len(divergences)
    metrics = {
        "kl": float(np.mean(divergences)) if total else None,
        "top1": agreed / total if total else None,
        "perplexity_ratio": float(np.exp(np.mean(losses))) if total else None,
        "compared": total,
    }
    kl = metrics["kl"]
    if params.max_kl is None or kl is None or kl <= params.max_kl:
        return metrics, ()
    what = f"the mean KL divergence from the fp32 model is {kl:.3g} nats; expected at most {params.max_kl:g}"
    fix = "leave the nodes that cost most in fp32 (`onnxbuild diagnose RECIPE:VARIANT`), or raise `generate: {max_kl: ...}`"
    return metrics, (Finding(what, f"variant '{params.variant}'", fix),)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    import numpy as np

    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    found: np.ndarray = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return found


def _notes(roles: Roles, batches: Sequence[int]) -> tuple[str, ...]:
    if roles.takes_padding or max(batches) == 1:
        return ()
    return (
        "no input masks the past, so that prompts of different lengths were not tried in one batch",
    )


KIND = StepKind(
    name="generate",
    version=1,
    params=GenerateParams,
    inputs=("model", "tokens", "exact?", "target?"),
    outputs={"report": "report"},
    toolchain=("onnxruntime", "numpy"),
    run=run,
    host_bound=True,
    entrypoints=lambda params: params.target.entrypoints,
)
