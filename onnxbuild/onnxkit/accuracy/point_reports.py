"""Findings, metrics and report of a model that was judged at reference points, and at points of random inputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnxbuild.core.params import to_json
from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.accuracy.comparison import OutputComparison
from onnxbuild.onnxkit.accuracy.verdict import EQUAL, ROUNDING_MULTIPLE, Judgement
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE
from onnxbuild.onnxkit.frameworks import np

_Z_95 = 1.959963984540054
"""Quantile of the standard normal distribution: 95 % of it is within +-z."""

JudgedPoint = tuple[str, Mapping[str, int], dict[str, Judgement]]
"""A point's name, its sizes, and output -> judgement."""


def pooled(
    judged: Sequence[JudgedPoint], least: Callable[[str], float | None]
) -> list[JudgedPoint]:
    """Excuse points where too few elements are equal, if enough are over all points together.

    One other id among two is half of them: a point is too small for a share.

    Args:
        judged: Judgements of all points, each by itself.
        least: Output -> its least share of equal elements; None for no bound.
    """
    counts: dict[str, tuple[int, int]] = {}
    for _, name, each in _judgements(judged):
        if each.comparison is not None and each.comparison.equal is not None:
            wrong, elements = counts.get(name, (0, 0))
            counts[name] = wrong + each.wrong, elements + each.comparison.elements
    excused = {
        name
        for name, (wrong, elements) in counts.items()
        if elements and 1 - wrong / elements >= (least(name) or 0.0)
    }
    return [
        (
            point,
            sizes,
            {n: _excused(each) if n in excused else each for n, each in outputs.items()},
        )
        for point, sizes, outputs in judged
    ]


def _excused(judgement: Judgement) -> Judgement:
    kept = tuple(each for each in judgement.breaches if each[0] != EQUAL)
    return replace(judgement, breaches=kept)


def report_of(judged: Sequence[JudgedPoint], findings: Sequence[Finding]) -> dict[str, Any]:
    """The part of report.json that every judged model has."""
    return {
        "passed": not findings,
        "findings": to_json(list(findings)),
        "metrics": metrics_of(judged),
        "points": [
            {
                "point": name,
                "sizes": dict(sizes),
                "passed": all(not each.breaches for each in outputs.values()),
                "outputs": {output: _show(each) for output, each in outputs.items()},
            }
            for name, sizes, outputs in judged
        ],
        "worst": _worst(judged),
        **_share_report(judged),
    }


def _share_report(judged: Sequence[JudgedPoint]) -> dict[str, Any]:
    """Return the share of equal elements of each exact output, with its interval; empty without such outputs."""
    counts = _counts(judged)
    if not counts:
        return {}
    return {
        "shares": {
            name: {
                "equal": equal / elements if elements else 1.0,
                "elements": elements,
                "interval_95": wilson_interval(equal, elements),
            }
            for name, (equal, elements) in counts.items()
        }
    }


def wilson_interval(equal: int, elements: int) -> list[float]:
    """[low, high] that holds a share with 95 % confidence; [0, 1] of nothing.

    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", J. Am. Stat. Assoc.
    22, 1927: honest near 0 and 1, where the normal interval has no width.

    Args:
        equal: Number of equal elements.
        elements: Number of elements in all.
    """
    if not elements:
        return [0.0, 1.0]
    share, spread = equal / elements, _Z_95**2 / elements
    middle = (share + spread / 2) / (1 + spread)
    half = _Z_95 / (1 + spread) * math.sqrt(share * (1 - share) / elements + spread / 4 / elements)
    low = 0.0 if not equal else max(0.0, middle - half)
    high = 1.0 if equal == elements else min(1.0, middle + half)
    return [low, high]


def findings_of(
    judged: Sequence[JudgedPoint], subject: str, fix: Callable[[str, str], str]
) -> tuple[Finding, ...]:
    """One for each output and kind of breach, at its worst point; what can't be compared first.

    Args:
        judged: Judgements of all points.
        subject: Name of what is judged, such as `variant 'int8'`.
        fix: (output, kind of breach) -> the fix to suggest.
    """
    worst: dict[tuple[str, str], tuple[float, str, str]] = {}
    count: dict[tuple[str, str], int] = {}
    for point, sizes, outputs in judged:
        shown = ", ".join(f"{axis}={size}" for axis, size in sizes.items())
        for output, each in outputs.items():
            for kind, what, excess in each.breaches:
                key = (output, kind)
                count[key] = count.get(key, 0) + 1
                if key not in worst or excess > worst[key][0]:
                    where = f"point '{point}'" + (f" ({shown})" if shown else "")
                    worst[key] = (excess, what, where)
    ordered = sorted(worst, key=lambda key: key[1] != "comparable")
    return tuple(
        Finding(
            what=worst[key][1] + _elsewhere(count[key] - 1, len(judged)),
            where=f"{subject}, output '{key[0]}', {worst[key][2]}",
            fix=fix(*key),
        )
        for key in ordered
    )


def rounding_notes(judged: Sequence[JudgedPoint], subject: str) -> tuple[str, ...]:
    """One line for each output that passes since it is off by no more than rounding is, with both numbers."""
    worst: dict[str, tuple[float, float, str]] = {}
    for point, output, each in _judgements(judged):
        if each.rounding and each.comparison is not None:
            seen = (each.comparison.max_abs, each.rounding, point)
            worst[output] = max(worst.get(output, seen), seen)
    return tuple(
        f"{subject}: output '{output}' is off by {off:.2g} at point '{point}', beyond the tolerance, and passes: rounding "
        f"alone moves the reference by {rounding:.2g}, and {ROUNDING_MULTIPLE} times that is allowed"
        for output, (off, rounding, point) in worst.items()
    )


def never_compared(judged: Sequence[JudgedPoint]) -> list[str]:
    """Return the outputs without an element at any point: equal shapes are all that is known of them."""
    elements: dict[str, int] = {}
    for _, name, found in comparisons(judged):
        elements[name] = elements.get(name, 0) + found.elements
    return [name for name, count in elements.items() if not count]


def empty_findings(judged: Sequence[JudgedPoint], subject: str) -> tuple[Finding, ...]:
    """One for each output that `never_compared` returns: a gate that compared nothing has not passed.

    Args:
        judged: Judgements of all points.
        subject: Name of what is judged, such as `variant 'int8'`.
    """
    what = (
        f"it has no element at any of the {len(judged)} points, so none of its values is compared"
    )
    fix = (
        "name inputs for which the model gives it some: `reference: {samples: FILE.py:CALLABLE}`; "
        "an output that never has any can be left out of `outputs`"
    )
    return tuple(
        Finding(what, f"{subject}, output '{name}'", fix) for name in never_compared(judged)
    )


def _elsewhere(more: int, points: int) -> str:
    return f" (and at {more} more of {points} points)" if more else ""


def metrics_of_all(several: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the worst of each metric of several models; the points of all of them."""
    found: dict[str, Any] = {}
    for metrics in several:
        for name, value in metrics.items():
            both = [each for each in (found.get(name), value) if each is not None]
            of_both = sum if name.startswith("points") else min if name.endswith("_min") else max
            found[name] = of_both(both) if both else None
    return found


def metrics_of(judged: Sequence[JudgedPoint]) -> dict[str, object]:
    """The worst of each measure over all points and outputs; None where nothing was measured.

    Errors and cosine are those of float outputs; `equal_min` is the least share of equal elements
    of any other output, over all points together.
    """
    every = [c for _, _, c in comparisons(judged)]
    found = [c for c in every if c.equal is None]
    passed = sum(all(not each.breaches for each in outputs.values()) for _, _, outputs in judged)
    ratios = [c.sqnr_db for c in found if c.sqnr_db is not None]
    return {
        "max_abs": max((c.max_abs for c in found), default=None),
        "max_rel": max((c.max_rel for c in found), default=None),
        "mean_abs": max((c.mean_abs for c in found), default=None),
        "cosine_min": min((c.cosine for c in found if c.cosine is not None), default=None),
        "sqnr_db_min": min(ratios, default=None),
        "equal_min": min(_shares(judged), default=None),
        "points": len(judged),
        "points_passed": passed,
    }


def _shares(judged: Sequence[JudgedPoint]) -> list[float]:
    """The share of equal elements of each output that has one, over all points together."""
    return [equal / elements if elements else 1.0 for equal, elements in _counts(judged).values()]


def _counts(judged: Sequence[JudgedPoint]) -> dict[str, tuple[int, int]]:
    """(equal elements, elements) of each output that is judged by them, over all points together."""
    counts: dict[str, tuple[int, int]] = {}
    for _, name, found in comparisons(judged):
        if found.equal is not None:
            equal, elements = counts.get(name, (0, 0))
            own = round(found.equal * found.elements)
            counts[name] = equal + own, elements + found.elements
    return counts


def _worst(judged: Sequence[JudgedPoint]) -> dict[str, Any] | None:
    """Return the comparison with the largest absolute difference, among float outputs if there are any."""
    every = comparisons(judged)
    found = [each for each in every if each[2].equal is None] or every
    if not found:
        return None
    point, output, comparison = max(found, key=lambda each: each[2].max_abs)
    return {"point": point, "output": output, **comparison.to_json()}


def comparisons(judged: Sequence[JudgedPoint]) -> list[tuple[str, str, OutputComparison]]:
    """Return (point, output, measures) of all that could be compared."""
    return [
        (point, output, each.comparison)
        for point, output, each in _judgements(judged)
        if each.comparison is not None
    ]


def _judgements(judged: Sequence[JudgedPoint]) -> Iterator[tuple[str, str, Judgement]]:
    for point, _, outputs in judged:
        for output, each in outputs.items():
            yield point, output, each


def _show(judgement: Judgement) -> dict[str, object]:
    measures = {} if judgement.comparison is None else judgement.comparison.to_json()
    rounding = {"rounding": judgement.rounding} if judgement.rounding else {}
    return {**measures, **rounding, "breaches": [what for _, what, _ in judgement.breaches]}


_ROUNDS_NOTHING = frozenset({"fp32", "fp16", "bf16"})
"""Precisions whose error does not depend on what the values are like."""

_ALWAYS = "comparable"
"""The kind of breach that counts at all points: another shape or dtype, NaN, a model that does not run."""

_MARGIN = 0.1
"""Share of a calibrated range's width by which a value may be beyond it."""

_MOST_BEYOND = 0.05
"""Share of an input's values that may be beyond."""


def is_real(point: str) -> bool:
    """Return whether a point is a sample of real data, by its name."""
    return point.startswith(SAMPLE)


def deciding_points(names: Iterable[str], precision: str) -> list[str]:
    """Return the points that decide on a variant: the real ones of a quantized variant if there are any, else all."""
    every = list(names)
    real = [] if precision in _ROUNDS_NOTHING else list(filter(is_real, every))
    return real or every


def only_real_decide(judged: Sequence[JudgedPoint], precision: str, *, scored: bool) -> bool:
    """Return whether real data decide on a variant, and noise only warns.

    8-bit scales are made for real values: a published classifier with a cosine of 0.999 on each real image had one of
    0.97 on noise.

    Args:
        judged: Judgements of all points.
        scored: Its score on real data must keep to a bound.
    """
    has_samples = len(deciding_points((name for name, _, _ in judged), precision)) < len(judged)
    return has_samples or (scored and precision not in _ROUNDS_NOTHING)


def without_noise(judged: Sequence[JudgedPoint]) -> list[JudgedPoint]:
    """Return judgements in which points of noise breach no bound; what can't be compared stays."""
    return [
        (
            name,
            sizes,
            {
                output: replace(each, breaches=tuple(b for b in each.breaches if b[0] == _ALWAYS))
                if not is_real(name)
                else each
                for output, each in outputs.items()
            },
        )
        for name, sizes, outputs in judged
    ]


def noise_notes(
    judged: Sequence[JudgedPoint], decisive: Sequence[JudgedPoint], subject: str
) -> tuple[str, ...]:
    """Return a line about the breaches at points of noise, which decide nothing: the first, and how many others there are.

    Args:
        judged: Judgements of all points.
        decisive: The same, `without_noise`.
        subject: Name of what is judged, such as `variant 'int8'`.
    """
    kept = {each.where for each in findings_of(decisive, subject, lambda *_: "")}
    noise = [each for each in judged if not is_real(each[0])]
    found = [each for each in findings_of(noise, subject, lambda *_: "") if each.where not in kept]
    if not found:
        return ()
    more = f" (and {len(found) - 1} more such findings)" if found[1:] else ""
    return (f"on random inputs, {found[0].where}: {found[0].what}{more}; real data decide",)


def dummies_fix(
    feeds: Iterable[Feeds], seen: Mapping[str, Sequence[float]]
) -> Callable[[Finding], Finding]:
    """Return what to write if dummy inputs are beyond what calibration saw, as a change of findings at such points.

    Args:
        feeds: Of the points of noise.
        seen: Input -> [least, greatest] of the calibration data.
    """
    beyond = _beyond(feeds, seen)
    if not beyond:
        return lambda finding: finding
    name, (low, high) = next(iter(beyond.items()))
    least, greatest = _outward(*seen[name])
    fix = (
        f"dummy values of input '{name}' go from {low:.3g} to {high:.3g}, and calibration saw {seen[name][0]:.3g} to "
        f"{seen[name][1]:.3g}: write `low: {least:g}, high: {greatest:g}` in `dummy_inputs: {{{name}: ...}}`, or let "
        "real data decide: `reference: {samples: FILE.py:CALLABLE}`"
    )

    def changed(finding: Finding) -> Finding:
        return finding if f"point '{SAMPLE}" in finding.where else replace(finding, fix=fix)

    return changed


def _beyond(
    feeds: Iterable[Feeds], seen: Mapping[str, Sequence[float]]
) -> dict[str, tuple[float, float]]:
    """Input -> least and greatest dummy value, of the inputs with too many values beyond what was seen."""
    values: dict[str, list[np.ndarray]] = {}
    for each in feeds:
        for name in each.keys() & seen.keys():
            if each[name].dtype.kind == "f":
                values.setdefault(name, []).append(each[name].ravel())
    found = {}
    for name, arrays in sorted(values.items()):
        every = np.concatenate(arrays)
        low, high = seen[name]
        margin = _MARGIN * (high - low)
        outside = (every < low - margin) | (every > high + margin)
        if every.size and float(outside.mean()) > _MOST_BEYOND:
            found[name] = (float(every.min()), float(every.max()))
    return found


def _outward(low: float, high: float) -> tuple[float, float]:
    """Round a range outward, to a hundredth or a tenth of its width."""
    step = 10.0 ** (math.floor(math.log10(max(high - low, 1e-30))) - 1)
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
