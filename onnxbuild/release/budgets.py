"""A release against the one before it: what got worse, and whether the recipe allows that much."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from onnxbuild.core.errors import BudgetError
from onnxbuild.expansion.limits import Budgets
from onnxbuild.release.previous import Previous
from onnxbuild.release_format.figures import Figures, Latency

_ROUNDING = 1e-9  # 1050 / 1000 - 1 is a little more than 0.05
_ALONE = {
    "error": "no target has one in both",
    "score": "no target has one in both",
    "latency": "it is measured next to one baseline at no point of both",
}


@dataclass(frozen=True, slots=True)
class BudgetBreach:
    """One figure that is beyond its budget."""

    variant: str
    what: str

    def __str__(self) -> str:
        return f"variant '{self.variant}': {self.what}"


def check_budgets(
    budgets: Mapping[str, Budgets],
    figures: Mapping[str, Figures],
    previous: Previous,
    host: Mapping[str, str],
) -> tuple[str, ...]:
    """Hold a release to its budgets.

    Args:
        budgets: Variant -> what it may cost more.
        figures: Variant -> its numbers now.
        host: Of the lock; latencies of two kinds of machine can't be compared.

    Returns:
        Notices of what could not be compared.

    Raises:
        BudgetError: Every breach, by name.
    """
    notices = []
    breaches: list[BudgetBreach] = []
    here = previous.host == host
    if not here and any(each.latency_ratio_increase is not None for each in budgets.values()):
        notices.append(
            f"latency is not compared with {previous.title}: it was locked on another kind of "
            "machine"
        )
    unmeasured = [
        variant
        for variant, now in figures.items()
        if budgets[variant].latency_ratio_increase is not None and not now.latencies
    ]
    if here and unmeasured:
        notices.append(
            f"latency of {', '.join(unmeasured)} is not compared: no benchmark measures it"
        )
    alone: dict[str, list[str]] = {}
    for variant, now in figures.items():
        before = previous.figures.get(variant)
        if before is None:
            notices.append(f"variant '{variant}' is not in {previous.title}: nothing to compare")
        else:
            found = _breaches(budgets[variant], before, now, latency=here)
            breaches += [BudgetBreach(variant, what) for what in found]
            for figure in _without_counterpart(budgets[variant], before, now, latency=here):
                alone.setdefault(figure, []).append(variant)
    notices += [
        f"{figure} of {', '.join(variants)} is not compared with {previous.title}: {_ALONE[figure]}"
        for figure, variants in alone.items()
    ]
    notices += [
        f"variant '{variant}' of {previous.title} is no longer there"
        for variant in previous.figures
        if variant not in figures
    ]
    if breaches:
        raise BudgetError(
            "\n  ".join(
                [f"worse than {previous.title} by more than allowed", *map(str, breaches)]
            ),
            fix="make it better, or allow it: `release: {budgets: {...}}` in the recipe",
        )
    return tuple(notices)


def _breaches(budgets: Budgets, old: Figures, new: Figures, *, latency: bool) -> Iterator[str]:
    if budgets.size_increase is not None:
        yield from _larger(budgets.size_increase, old, new)
    if budgets.error_increase is not None:
        yield from _less_exact(budgets.error_increase, old, new)
    if budgets.accuracy_drop is not None:
        yield from _less_accurate(budgets.accuracy_drop, old, new)
    if budgets.latency_ratio_increase is not None and latency:
        yield from _slower(budgets.latency_ratio_increase, old, new)


def _without_counterpart(
    budgets: Budgets, old: Figures, new: Figures, *, latency: bool
) -> Iterator[str]:
    """Yield each figure that has a budget, and that the two releases have nowhere in common."""
    errors = old.errors.keys() & new.errors.keys() or old.equals.keys() & new.equals.keys()
    if budgets.error_increase is not None and not errors:
        yield "error"
    if budgets.accuracy_drop is not None and not old.scores.keys() & new.scores.keys():
        yield "score"
    if budgets.latency_ratio_increase is not None and latency and new.latencies:
        before, now = (
            {_measured_as(each) for each in side.latencies if each.ratio is not None}
            for side in (old, new)
        )
        if not before & now:
            yield "latency"


def _larger(bound: float, old: Figures, new: Figures) -> Iterator[str]:
    increase = _increase(old.model_bytes, new.model_bytes)
    if increase > bound + _ROUNDING:
        change = f"size {old.model_bytes:,} -> {new.model_bytes:,} bytes"
        yield _beyond(change, increase, bound, "size_increase")


def _less_exact(bound: float, old: Figures, new: Figures) -> Iterator[str]:
    for provider in sorted(old.errors.keys() & new.errors.keys()):
        was, now = old.errors[provider], new.errors[provider]
        increase = _increase(was, now)
        if increase > bound + _ROUNDING:
            change = f"max abs error on {provider} {was:.3g} -> {now:.3g}"
            yield _beyond(change, increase, bound, "error_increase")
    for provider in sorted(old.equals.keys() & new.equals.keys()):
        was, now = 1 - old.equals[provider], 1 - new.equals[provider]
        increase = _increase(was, now)
        if increase > bound + _ROUNDING:
            change = f"share of elements that differ on {provider} {was:.3g} -> {now:.3g}"
            yield _beyond(change, increase, bound, "error_increase")


def _less_accurate(bound: float, old: Figures, new: Figures) -> Iterator[str]:
    for provider in sorted(old.scores.keys() & new.scores.keys()):
        was, now = old.scores[provider], new.scores[provider]
        if was - now > bound + _ROUNDING:
            yield (
                f"score on {provider} {was:.6g} -> {now:.6g} is {was - now:.6g} less; "
                f"the budget is {bound:g} (accuracy_drop)"
            )


def _slower(bound: float, old: Figures, new: Figures) -> Iterator[str]:
    before = {_measured_as(each): each.ratio for each in old.latencies}
    for each in new.latencies:
        was = before.get(_measured_as(each))
        if was is None or each.ratio is None:
            continue
        increase = _increase(was, each.ratio)
        if increase > bound + _ROUNDING:
            change = (
                f"latency on {each.provider} at {each.point} {was:.3g} -> {each.ratio:.3g} of "
                f"{each.baseline.title}'s"
            )
            yield _beyond(change, increase, bound, "latency_ratio_increase")


def _measured_as(latency: Latency) -> tuple[str, str, str]:
    """Return where and against what a latency was measured: ratios to two baselines are not compared."""
    return latency.provider, latency.point, latency.baseline.title


def _increase(old: float, new: float) -> float:
    """Return the increase as a share of the old value; infinite if that was zero."""
    if old:
        return new / old - 1
    return math.inf if new else 0.0


def _beyond(change: str, increase: float, bound: float, budget: str) -> str:
    return f"{change} is {100 * increase:.3g} % more; the budget is {100 * bound:g} % ({budget})"
