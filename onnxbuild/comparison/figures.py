"""One difference of two sides, and the numbers of two bundles: verdicts, accuracy, size and latency."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from onnxbuild.comparison.sides import ComparedBundle, GateReport
from onnxbuild.onnxkit.differences.sentences import ValueChange
from onnxbuild.onnxkit.drawing.numbers import number


class Group(StrEnum):
    """Group that a difference is in; the most important first."""

    VERDICTS = "verdicts"
    ACCURACY = "accuracy"
    SIGNATURE = "signature"
    RECIPE = "recipe"
    INPUTS = "inputs"
    TOOLS = "tools"
    GRAPH = "graph"
    WEIGHTS = "weights"
    FILES = "files"
    SIZE = "size"


ORDER = tuple(Group)


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference.

    Attributes:
        group: What it is in.
        sentence: For a person.
        data: The same as JSON values; of several variants, of the first.
        change: The same as one value that has changed; None if it is no such thing.
        variants: Names of the bundles that it is of; empty for all of a side.
        data_by_variant: Variant -> its data, of those where it is not `data`.
    """

    group: Group
    sentence: str
    data: dict[str, Any] = field(default_factory=dict)
    change: ValueChange | None = None
    variants: tuple[str, ...] = ()
    data_by_variant: dict[str, dict[str, Any]] = field(default_factory=dict)

    def of(self, variant: str) -> Difference:
        """The same, of one variant."""
        return replace(self, variants=(variant,))

    def merged(self, other: Difference) -> Difference:
        """The same, of another's variants, too; their sentences are equal, their places may not be."""
        own = dict.fromkeys(other.variants, other.data) if other.data != self.data else {}
        return replace(
            self,
            variants=(*self.variants, *other.variants),
            data_by_variant={**self.data_by_variant, **own},
        )


_MEASURES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "validation": (
        ("max_abs", "largest error"),
        ("cosine_min", "least cosine"),
        ("equal_min", "least share of equal elements"),
    ),
    "evaluation": (("score", "score"),),
}
"""Noun of a gate -> the figures of its report, and what to call them; of any other gate, all are shown."""
_SAME_SHARE = 1e-9
_MOST_TIMES = 10  # from here on, times are shown instead of a percentage
_MANY_DIGITS = 9  # of figures that four digits don't tell apart


@dataclass(frozen=True, slots=True)
class LatencyChange:
    """A latency on both sides.

    Attributes:
        variant: The bundle's name.
        provider: Where it was measured.
        point: The sizes, `batch=1`.
        before: Median in ms, and the 95 % interval of it: (median, low, high).
        after: The same of the other.
        speedup: How many times as fast the other is, with its interval, where they were measured side
            by side; None for recorded latencies.
    """

    variant: str
    provider: str
    point: str
    before: tuple[float, float, float]
    after: tuple[float, float, float]
    speedup: tuple[float, float | None, float | None] | None = None
    together: bool = True

    @property
    def known(self) -> bool:
        """Whether a difference was measured: the intervals have nothing in common, or 1 is not in that of the ratio."""
        if self.speedup is not None:
            _, low, high = self.speedup
            return low is not None and high is not None and not low <= 1 <= high
        return self.together and (self.before[2] < self.after[1] or self.after[2] < self.before[1])

    @property
    def words(self) -> str:
        """The difference in words."""
        if not self.together:
            return "recorded at different times"
        if not self.known:
            return "no difference measured"
        ratio = self.before[0] / self.after[0] if self.speedup is None else self.speedup[0]
        return (
            f"{number(ratio)} x as fast" if ratio >= 1 else f"takes {number(1 / ratio)} x as long"
        )

    @property
    def sentence(self) -> str:
        """Sentence with the place of the measurement, both times, and the difference."""
        where = f"{self.provider} at {self.point}"
        times = f"on {where}: {_ms(self.before)} -> {_ms(self.after)}"
        return f"{times}: {self.words}" if self.together else times


def _ms(value: tuple[float, float, float]) -> str:
    return f"{number(value[0])} ms [{number(value[1])} to {number(value[2])}]"


def judged(old: ComparedBundle, new: ComparedBundle) -> Iterator[Difference]:
    """Yield what differs in the verdicts of gates."""
    ones, others = _verdicts(old), _verdicts(new)
    said = {(each.noun, each.of) for each in (*old.failed, *new.failed)}
    for key in dict.fromkeys((*ones, *others)):
        left, right = ones.get(key), others.get(key)
        if left is None or right is None or left.content["passed"] == right.content["passed"]:
            continue
        if key in said:
            continue  # with what it finds fault with
        passes = right.content["passed"]
        data = {"kind": "verdict", "gate": right.title, "before": not passes, "after": passes}
        words = ("failed", "passed") if passes else ("passed", "failed")
        change = ValueChange(right.title, *words)
        text = f"{right.title} {'passes' if passes else 'fails'} now"
        yield Difference(Group.VERDICTS, text, data, change)
    gates = [{each.gate for each in bundle.failed} for bundle in (old, new)]
    for each in new.failed:
        if each not in old.failed:
            word = "still fails" if each.gate in gates[0] else "fails now"
            data = {"kind": "failed", "what": str(each)}
            yield Difference(Group.VERDICTS, f"{word}: {each}", data)
    for each in old.failed:
        if each not in new.failed and each.gate not in gates[1]:
            data = {"kind": "mended", "what": str(each)}
            yield Difference(Group.VERDICTS, f"no longer fails: {each}", data)


def _verdicts(bundle: ComparedBundle) -> dict[tuple[str, str], GateReport]:
    return {
        (each.noun, each.of): each
        for each in bundle.reports
        if isinstance(each.content.get("passed"), bool)
    }


def scored(old: ComparedBundle, new: ComparedBundle) -> Iterator[Difference]:
    """Yield what differs in accuracy."""
    ones, others = _scores(old), _scores(new)
    for name in dict.fromkeys((*ones, *others)):
        left, right = ones.get(name), others.get(name)
        if left is None or right is None or _is_same(left, right):
            continue
        data = {"kind": "figure", "name": name, "before": left, "after": right}
        change = ValueChange(name, *shown_pair(left, right))
        yield Difference(Group.ACCURACY, f"{change} ({right - left:+.2g})", data, change)


def _scores(bundle: ComparedBundle) -> dict[str, float]:
    return {name: value for each in bundle.reports for name, value in _figures(each)}


def _figures(report: GateReport) -> Iterator[tuple[str, float]]:
    values: dict[str, Any] = {**report.content}
    if isinstance(metrics := report.content.get("metrics"), Mapping):
        values |= metrics
    if report.noun in _MEASURES:
        named = [(key, f"{title} on {report.of}") for key, title in _MEASURES[report.noun]]
    else:
        named = [(key, f"{key} of {report.of}") for key in sorted(values)]
    for key, name in named:
        value = values.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield name, value


def shown_pair(left: float, right: float) -> tuple[str, str]:
    """Return two figures as text, with as many digits as tell them apart."""
    digits = 4 if f"{left:.4g}" != f"{right:.4g}" else _MANY_DIGITS
    return f"{left:.{digits}g}", f"{right:.{digits}g}"


def _is_same(left: float, right: float) -> bool:
    return abs(left - right) <= _SAME_SHARE * max(abs(left), abs(right))


def sized(old: ComparedBundle, new: ComparedBundle) -> Iterator[Difference]:
    """Yield the change of the model's size."""
    if _known_sizes(old, new) and old.size_bytes != new.size_bytes:
        left, right = old.size_bytes, new.size_bytes
        data = {"kind": "size", "before": left, "after": right}
        times = right / left
        share = f"{(times - 1) * 100:+.3g} %" if times < _MOST_TIMES else f"{number(times)} x"
        yield Difference(Group.SIZE, f"{left:,} -> {right:,} bytes ({share})", data)


def _known_sizes(old: ComparedBundle, new: ComparedBundle) -> bool:
    is_here = [each.model is not None or each.folder is not None for each in (old, new)]
    return all(is_here) and bool(old.size_bytes and new.size_bytes)


def latencies(
    old: ComparedBundle, new: ComparedBundle, name: str, *, together: bool
) -> Iterator[LatencyChange]:
    """Yield recorded latencies that both sides have.

    Args:
        name: What to call both.
        together: They were recorded in one measurement.
    """
    others = {(each.provider, each.point): each for each in new.latencies}
    for each in old.latencies:
        match = others.get((each.provider, each.point))
        if match is not None and match != each:  # else it is one measurement
            yield LatencyChange(
                name,
                each.provider,
                each.point,
                (each.p50_ms, each.low_ms, each.high_ms),
                (match.p50_ms, match.low_ms, match.high_ms),
                together=together,
            )


def figure_rows(old: ComparedBundle, new: ComparedBundle) -> list[tuple[str, str, str, str]]:
    """Return (figure, before, after, change) of all figures but times that a side has, equal ones too."""
    rows = []
    for name, left, right in _all_figures(old, new):
        change = (
            "" if left is None or right is None or _is_same(left, right) else _moved(left, right)
        )
        cells = _cell(left), _cell(right)
        if change and isinstance(left, float) and isinstance(right, float):
            cells = shown_pair(left, right)
        rows.append((name, *cells, change))
    return rows


def _all_figures(
    old: ComparedBundle, new: ComparedBundle
) -> Iterator[tuple[str, float | None, float | None]]:
    if old.size_bytes or new.size_bytes:
        yield "size in bytes", old.size_bytes or None, new.size_bytes or None
    counts = [None if b.manifest is None else b.manifest.nodes for b in (old, new)]
    if any(counts):
        yield "nodes", *counts  # type: ignore[misc]
    weights = [None if b.manifest is None else b.manifest.parameters for b in (old, new)]
    if any(weights):
        yield "parameters", *weights  # type: ignore[misc]
    ones, others = _scores(old), _scores(new)
    for name in dict.fromkeys((*ones, *others)):
        yield name, ones.get(name), others.get(name)


def _cell(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _moved(left: float, right: float) -> str:
    if left and not 1 / _MOST_TIMES < abs(right / left) < _MOST_TIMES:
        return f"{right / left:.3g} x"
    return f"{(right - left) / abs(left) * 100:+.3g} %" if left else f"{right - left:+.3g}"
