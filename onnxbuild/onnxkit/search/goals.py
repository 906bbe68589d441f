"""A search's goal, its choice by data in two halves, and the sentences that report both."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from onnxbuild.core.errors import StepError
from onnxbuild.core.params import option
from onnxbuild.core.sizes import figure, size_text
from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.accuracy.sample_outputs import SampleErrors
from onnxbuild.onnxkit.timing.ratios import Ratio, chained, paired, ratio_over
from onnxbuild.onnxkit.timing.rounds import Turns, read_groups, summarize_turns

_ROUNDING = 1e-9
"""0.99 - 0.98 is more than 0.01 in binary; a drop of exactly the bound meets it, as in `evaluate`."""


@dataclass(frozen=True, slots=True)
class Goal:
    """Share of the fp32 model's quality that a variant must keep, over the data of `fidelity`, `evaluate` or `generate`."""

    cosine_mean: float | None = option(
        None, help="least mean cosine similarity of the samples", minimum=-1, maximum=1
    )
    cosine_min: float | None = option(
        None, help="least cosine similarity of any sample", minimum=-1, maximum=1
    )
    sqnr_db: float | None = option(None, help="least signal-to-noise ratio over all samples, dB")
    max_drop: float | None = option(
        None, help="how far the `evaluate` score may be below the reference's", minimum=0
    )
    perplexity_ratio: float | None = option(
        None,
        help="greatest ratio of the perplexity to the fp32 model's, on PyTorch's continuations of `generate`'s prompts, fed "
        "through the cache",
        minimum=1,
        sparse=True,
    )
    size: Literal["smallest"] | None = option(
        None,
        help="take the smallest that keeps the bounds, not the fastest; weights get 4 bits, and the most sensitive 8",
        sparse=True,
    )


_FROM_ONE = ("cosine_mean", "cosine_min", "perplexity_ratio")
"""Figures that are 1 where nothing is lost."""


def asked(goal: Goal) -> dict[str, float]:
    """The bounds that are named."""
    values = {each.name: getattr(goal, each.name) for each in fields(goal) if each.name != "size"}
    return {name: value for name, value in values.items() if value is not None}


def refuse_cosines(goal: Goal, where: str) -> None:
    """Refuse a goal for the cosine of samples that are one number each: any trial would meet it.

    Raises:
        StepError: The goal names a cosine.
    """
    cosines = [name for name in asked(goal) if name.startswith("cosine")]
    if cosines:
        raise StepError(
            f"the goal names {' and '.join(cosines)}, and the model gives one number a sample, whose cosine is 1 "
            "or -1 however large the error is",
            where=where,
            fix="write `goal: {sqnr_db: 30}`, or `goal: {max_drop: ...}` with `evaluate`",
        )


def missed(goal: Goal, figures: Mapping[str, Any], margin: float = 0.0) -> dict[str, float]:
    """Bound -> by how much it is missed, as a share of what may be lost; those met are left out.

    Args:
        figures: cosine_mean, cosine_min, sqnr_db, drop; None or absent where nothing is lost.
        margin: Share of what may be lost that must be left over.
    """
    found = {}
    for name, bound in asked(goal).items():
        value = figures.get(_figure(name))
        if value is None:
            continue
        allowed = abs(1 - bound) if name in _FROM_ONE else abs(bound)
        if name in ("max_drop", "perplexity_ratio"):
            least = 1 if name in _FROM_ONE else 0
            lacking = value - least - allowed * (1 - margin) - _ROUNDING
        elif name == "sqnr_db":  # what may be lost there is the noise
            lacking = bound - 10 * math.log10(1 - margin) - value
        else:
            lacking = bound + margin * allowed - value
        if lacking > 0:
            found[name] = lacking / max(allowed, 1e-9)
    return found


def reached(goal: Goal, figures: Mapping[str, Any]) -> str:
    """Return what was got of what is asked: `cosine_mean 0.9961, drop 0.01`."""
    parts = []
    for name in map(_figure, asked(goal)):
        value = figures.get(name)
        parts.append(f"{name} {value:.7g}" if value is not None else f"{name} without loss")
    return ", ".join(parts)


def written(goal: Goal) -> str:
    """Return what is asked: `cosine_mean 0.995, max_drop 0.01`."""
    return ", ".join(f"{name} {bound:.10g}" for name, bound in asked(goal).items())


def _figure(bound: str) -> str:
    return "drop" if bound == "max_drop" else bound


CHOOSING, JUDGING = 0, 1
"""The even and the odd samples: a model is chosen by one half and held to its goal on the other."""

LEAST_SPLIT = 20
"""Least number of samples to split; with fewer, each half is all of them."""


def is_halved(errors: SampleErrors) -> bool:
    """Return whether there are samples enough for two halves."""
    return len(errors.cosines) >= LEAST_SPLIT


def figures_of(
    errors: SampleErrors | None,
    scored: Mapping[str, Any],
    half: int,
    prompts: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return a model's values of a goal's measures on one half of the data.

    Args:
        errors: Of its `fidelity` report; None where there is none.
        scored: Its `evaluate` report; empty where there is none.
        prompts: `by_prompt` of its `generate` report; empty where there is none.

    Returns: samples, cosine_mean, cosine_min, sqnr_db, where there is fidelity data; score of all of
    the evaluation data, drop of the half; kl and perplexity_ratio where there are prompts.
    """
    drops = scored.get("half_drops") or [scored.get("drop")] * 2
    score = {"score": scored.get("score"), "drop": drops[half]} | _through_cache(prompts, half)
    if errors is None:
        return score
    found = asdict(errors.fidelity(half, 2) if is_halved(errors) else errors.fidelity())
    names = ("samples", "cosine_mean", "cosine_min", "sqnr_db")
    return {name: found[name] for name in names} | score


def _through_cache(prompts: Sequence[Mapping[str, Any]], half: int) -> dict[str, Any]:
    if not prompts:
        return {}
    chosen = prompts[half::2] if len(prompts) >= LEAST_SPLIT else prompts
    total = sum(each["compared"] for each in chosen)
    loss, kl = (sum(p[name] * p["compared"] for p in chosen) / total for name in ("loss", "kl"))
    return {"prompts": len(chosen), "kl": kl, "perplexity_ratio": math.exp(loss)}


class MeasuredTrials:
    """Latencies of some of the models in a benchmark's report.

    Args:
        folder: The report's, with the raw samples.
        points: Where they were measured.
    """

    def __init__(self, folder: Path, points: Sequence[str], names: Sequence[str]) -> None:
        self._points = tuple(points)
        self._groups = {
            name: {point: read_groups(folder, point, name) for point in points} for name in names
        }

    def p50_ms(self, name: str) -> dict[str, float]:
        """Point -> median latency."""
        return {
            point: summarize_turns([turn for group in groups for turn in group]).p50_ms
            for point, groups in self._groups[name].items()
        }

    def latency_ms(self, name: str) -> float:
        """Geometric mean of the medians over the points."""
        medians = self.p50_ms(name).values()
        return math.exp(sum(map(math.log, medians)) / len(medians))

    def ratio(self, one: str, other: str) -> Ratio:
        """Return the ratio of two latencies, over the points.

        Two that were in no group together are compared through one that was in both of theirs.
        """
        if pairs := self._pairs(one, other):
            return ratio_over(pairs)
        for between in self._groups:
            first, second = self._pairs(one, between), self._pairs(between, other)
            if first and second:
                return chained(ratio_over(first), ratio_over(second))
        raise KeyError(
            f"'{one}' and '{other}' were measured together with no trial that is in both groups"
        )

    def _pairs(self, one: str, other: str) -> list[tuple[Turns, Turns]]:
        """Return two models' paired turns at each point; empty if a point has none."""
        found = [paired(self._groups[one][p], self._groups[other][p]) for p in self._points]
        return found if all(turns for turns, _ in found) else []


_DOUBT = 0.06
"""A trial that may be faster than the chosen by more is reported: the measurement was too noisy."""

Row = Mapping[str, Any]
"""A trial of a search's report."""


def none_meets(variant: str, goal: Goal, margin: float, tried: int, nearest: Row) -> Finding:
    """Return the finding that no trial meets a variant's goal."""
    spare = f" with a margin of {margin:g}" if margin else ""
    parts = [each["part"] for each in nearest["lost_parts"]]
    without = f", and loses {', '.join(parts)}" if parts else ""
    return Finding(
        f"none of {tried} trials meets the goal ({written(goal)}){spare}; the nearest, "
        f"'{nearest['name']}', reaches {reached(goal, nearest['choosing'])}{without}",
        f"variant '{variant}'",
        "ask for less, raise `trials`, or add modes to `include`",
    )


_FIDELITY_DATA = "`fidelity` data"


def misses_judging(variant: str, goal: Goal, margin: float, chosen: Row) -> Finding:
    """The chosen trial does not hold on the data that judges."""
    samples = chosen["judging"].get("samples")
    missing = list(chosen["missed_judging"])
    named = {"max_drop": "`evaluate` data", "perplexity_ratio": "prompts"}
    data = named.get(missing[0], _FIDELITY_DATA) if len(missing) == 1 else _FIDELITY_DATA
    others = f"the {samples} others" if samples and data == _FIDELITY_DATA else "the others"
    return Finding(
        f"'{chosen['name']}' meets the goal ({written(goal)}) on the samples that it was chosen by "
        f"({reached(goal, chosen['choosing'])}), but not on {others}: "
        f"{reached(goal, chosen['judging'])}",
        f"variant '{variant}'",
        f"raise `margin` above {margin:g}, or yield more {data}",
    )


def choice(variant: str, goal: Goal, chosen: Row, tried: int) -> str:
    """Return the choice, and the YAML that gives it without a search."""
    return (
        f"variant '{variant}': '{chosen['name']}' is the fastest of {tried} trials that meets the "
        f"goal ({figure(chosen['latency'], 3)} ms, {reached(goal, chosen['judging'])} where it is "
        f"judged); written out: {chosen['written']}"
    )


def smallest(variant: str, goal: Goal, chosen: Row, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the choice of the smallest, with the YAML that gives it without a search, and the front of size and loss."""
    front = sorted((row for row in rows if row["on_front"]), key=lambda row: row["size_bytes"])
    shown = "; ".join(
        f"'{row['name']}' {size_text(row['size_bytes'])}, {reached(goal, row['choosing'])}"
        for row in front
    )
    choice = (
        f"variant '{variant}': '{chosen['name']}' is the smallest of {len(rows)} trials that meets the goal "
        f"({size_text(chosen['size_bytes'])}, {reached(goal, chosen['judging'])} where it is judged); "
        f"written out: {chosen['written']}"
    )
    return choice, f"variant '{variant}': the front: {shown}"


def not_applicable(variant: str, names: Sequence[str]) -> str:
    """Trials that are not there."""
    what = f"trial '{names[0]}' is" if len(names) == 1 else f"trials {', '.join(names)} are"
    return f"variant '{variant}': {what} left out: not applicable to this model"


def lost(variant: str, rows: Sequence[Row]) -> tuple[str, ...]:
    """Return a line on the trials that lose a part of an output, which are not taken whatever their figures."""
    found = {row["name"]: row["lost_parts"][0]["part"] for row in rows if row["lost_parts"]}
    if not found:
        return ()
    names, parts = (
        ", ".join(f"'{each}'" for each in found),
        ", ".join(dict.fromkeys(found.values())),
    )
    return (f"variant '{variant}': not taken, because {parts} is lost in it: {names}",)


def doubts(
    variant: str, met: Sequence[Row], chosen: Row, measured: MeasuredTrials
) -> tuple[str, ...]:
    """Trials that meet the goal, too, and may be faster; and whether fp32 is."""
    found = []
    for row in met:
        if row is chosen:
            continue
        ratio = measured.ratio(row["name"], chosen["name"])
        if ratio.low < 1 / (1 + _DOUBT):
            bounds = f" ({ratio.low:.2f} to {ratio.high:.2f})" if ratio.low else ""
            found.append(f"'{row['name']}' {ratio.value:.2f} x{bounds}")
    slower = (chosen["speedup"]["high"] or 1) < 1
    notes = (_slower(variant, chosen),) if slower else ()
    if not found:
        return notes
    note = (
        f"variant '{variant}': the machine was too noisy to decide whether others that meet the goal "
        f"are faster than '{chosen['name']}': its time is {', '.join(found)}; search again when it "
        "is idle"
    )
    return (*notes, note)


def few(variant: str, goal: Goal, chosen: Row, least: int) -> tuple[str, ...]:
    """Data that both chooses and judges.

    Args:
        goal: What is asked of it.
        least: Samples that are halved.
    """
    notes = []
    samples = chosen["judging"].get("samples")
    if samples is not None and not chosen["halved"]:
        counted = f"{samples} samples" if samples > 1 else "one sample"
        notes.append(
            f"variant '{variant}': {counted} of `fidelity` data both choose and judge, and other "
            f"data may not keep the goal; yield {least} or more"
        )
    prompts = chosen["judging"].get("prompts")
    if goal.perplexity_ratio is not None and prompts == chosen["choosing"]["prompts"] < least:
        notes.append(
            f"variant '{variant}': {prompts} prompts both choose and judge, and other texts may not keep the goal; yield "
            f"{least} or more, and write `count: {least}` next to what yields them"
        )
    if goal.max_drop is not None and not chosen["halved_drop"]:
        notes.append(
            f"variant '{variant}': all of the `evaluate` data both chooses and judges, and other "
            f"data may drop by more than {goal.max_drop:g}; yield {least} samples or more, of which "
            "either half can be scored"
        )
    return tuple(notes)


def _slower(variant: str, chosen: Row) -> str:
    ratio = chosen["speedup"]
    return (
        f"variant '{variant}': '{chosen['name']}' is slower than fp32 on this machine "
        f"({ratio['value']:.2f} x, {ratio['low']:.2f} to {ratio['high']:.2f}): it saves size alone"
    )


def pareto_front(points: Sequence[tuple[float, ...]]) -> set[int]:
    """Positions of the points that no other dominates.

    A point dominates another if it is no greater in any coordinate and less in one.

    Args:
        points: Of one length; less is better in each coordinate.
    """
    return {
        number
        for number, point in enumerate(points)
        if not any(_dominates(other, point) for other in points)
    }


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))
