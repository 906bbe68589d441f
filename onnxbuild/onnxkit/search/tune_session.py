"""A search for faster session settings: one question at a time, each answer against the best so far."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from onnxbuild.onnxkit.host.progress import report
from onnxbuild.onnxkit.sessions.settings import Question, SessionSettings, TuneOptions, shown
from onnxbuild.onnxkit.timing.ratios import Ratio

_PROOF_SHARE = 0.25
_PASSES = 2
"""Passes over all questions: a later answer can change the best answer to an earlier question."""

_ALL_UP_TO = 8
"""Cores: with more, numbers of threads are tried in steps of a half."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Settings measured against others, in one interleaved run.

    Attributes:
        ratios: Time of each by that of the others; or why a session can't have these settings.
        spent_s: What it took.
    """

    ratios: tuple[Ratio | str, ...]
    spent_s: float


Compare = Callable[[SessionSettings, Sequence[SessionSettings], float], Compared]
"""(compared with, settings, seconds for each) -> how they compare."""


@dataclass(frozen=True, slots=True)
class QuestionAnswers:
    """One question and its answers.

    Attributes:
        question: What was varied.
        current: The best until then.
        tried: Settings, and how they compare with it.
        best: The best from then on.
    """

    question: Question
    current: SessionSettings
    tried: tuple[tuple[SessionSettings, Ratio | str], ...]
    best: SessionSettings


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search.

    Attributes:
        asked: In their order.
        best: What it ended with.
        proof: The best measured once more against the default; None if that is the best.
        chosen: The best if the proof holds, else the default.
    """

    asked: tuple[QuestionAnswers, ...]
    best: SessionSettings
    proof: Ratio | None
    chosen: SessionSettings


def search_settings(
    default: SessionSettings, options: TuneOptions, cores: int, compare: Compare
) -> Found:
    """Coordinate descent from the default; the result is measured again against it.

    Each question's winner is the luckiest of several, so what it was chosen by is no proof: the last
    measurement is, and it is of two settings alone.

    Args:
        default: Where it starts, and what it ends with unless something is proven to be faster.
        cores: That sessions may use.
    """
    asked: list[QuestionAnswers] = []
    best = default
    slots = sum(len(alternatives(each, default, cores)) + 1 for each in options.search)
    left_s = options.max_time_s * (1 - _PROOF_SHARE)
    each_s = left_s / max(slots, 1)
    for turn in range(_PASSES):
        before = best
        for question in options.search:
            tried = alternatives(question, best, cores)
            if not tried or (turn and (len(tried) + 1) * each_s > left_s):
                continue
            report(
                options.max_time_s * (1 - _PROOF_SHARE) - left_s,
                options.max_time_s,
                "s",
                _standing(question, best, default),
                whole=True,
            )
            compared = compare(best, tried, each_s)
            left_s -= compared.spent_s
            pairs = tuple(zip(tried, compared.ratios, strict=True))
            asked.append(QuestionAnswers(question, best, pairs, _fastest(best, pairs)))
            best = asked[-1].best
        if best == before:
            break
    if best == default:
        return Found(tuple(asked), best, None, default)
    (proof,) = compare(default, [best], options.max_time_s * _PROOF_SHARE / 2).ratios
    assert isinstance(proof, Ratio)
    return Found(tuple(asked), best, proof, best if proof.high < 1 else default)


def _standing(question: Question, best: SessionSettings, default: SessionSettings) -> str:
    found = "the recipe's settings" if best == default else shown(best, default)
    return f"trying {question}; best so far: {found}"


def alternatives(
    question: Question, best: SessionSettings, cores: int
) -> tuple[SessionSettings, ...]:
    """Settings that differ from `best` in one respect; none where it makes no difference."""
    found: list[SessionSettings] = []
    for each in _answers(question, best, cores):
        if each != best and each not in found:
            found.append(each)
    return tuple(found)


def thread_counts(cores: int) -> tuple[int, ...]:
    """Return thread counts from 1 to all cores: each up to 8, then by half as many again."""
    counts = list(range(1, min(cores, _ALL_UP_TO) + 1))
    while counts[-1] < cores:
        counts.append(min(cores, counts[-1] * 3 // 2))
    return tuple(counts)


def _answers(question: Question, best: SessionSettings, cores: int) -> Iterator[SessionSettings]:
    is_parallel = best.execution_mode == "parallel"
    if question == "threads":
        for count in thread_counts(cores):
            yield replace(best, intra_op_threads=count)
    elif question == "spinning":
        if best.intra_op_threads != 1 or is_parallel:
            yield replace(best, spinning="allow")
            yield replace(best, spinning="stop")
            yield replace(best, spinning="never")
    elif question == "execution_mode":
        if is_parallel:
            yield replace(best, execution_mode="sequential", inter_op_threads=0)
        elif cores > 1:
            parallel = replace(best, execution_mode="parallel")
            yield replace(parallel, inter_op_threads=2)
            yield replace(parallel, inter_op_threads=2, intra_op_threads=max(1, cores // 2))
            yield replace(parallel, inter_op_threads=cores, intra_op_threads=1)
    else:
        yield replace(best, cpu_arena=not best.cpu_arena)
        yield replace(best, memory_pattern=not best.memory_pattern)
        yield replace(best, cpu_arena=not best.cpu_arena, memory_pattern=not best.memory_pattern)


def _fastest(
    best: SessionSettings, tried: Sequence[tuple[SessionSettings, Ratio | str]]
) -> SessionSettings:
    """The fastest of those that are faster for sure; else what was the best before."""
    sure = [
        (ratio.value, settings)
        for settings, ratio in tried
        if isinstance(ratio, Ratio) and ratio.high < 1
    ]
    return min(sure, key=lambda each: each[0])[1] if sure else best
