"""Points of random inputs: what they decide where there are real data, and why a variant may fail there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.accuracy.point_reports import JudgedPoint, findings_of
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.data.reference_feeds import SAMPLE

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
        precision: The variant's.
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
    """Return a line for each breach at points of noise that decides nothing.

    Args:
        judged: Judgements of all points.
        decisive: The same, `without_noise`.
        subject: Name of what is judged, such as `variant 'int8'`.
    """
    kept = {each.where for each in findings_of(decisive, subject, lambda *_: "")}
    noise = [each for each in judged if not is_real(each[0])]
    return tuple(
        f"on random inputs, {each.where}: {each.what}; real data decide"
        for each in findings_of(noise, subject, lambda *_: "")
        if each.where not in kept
    )


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
    import numpy as np

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
