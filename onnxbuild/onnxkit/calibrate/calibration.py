"""Calibration: what a model's values were over the data, and the ranges drawn from that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from onnxbuild.onnxkit.calibrate.ranges import measure_ranges
from onnxbuild.onnxkit.calibrate.thresholds import (
    IntegerGrid,
    Range,
    choose_range,
    clipped_share,
    histogram_bounds,
    measure_histograms,
)
from onnxbuild.onnxkit.data.feeds import FeedCache, Feeds
from onnxbuild.onnxkit.host.progress import stage

if TYPE_CHECKING:
    import numpy as np
    import onnx

Method = Literal["minmax", "moving_average", "percentile", "entropy", "mse"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Method of drawing ranges, with its parameters.

    Attributes:
        method: Calibration method.
        grid: Integer grid that the ranges are mapped to.
        percentile: Share of values that `percentile` keeps inside, in percent.
        averaging: Weight of a new sample for `moving_average`, 0 to 1.
        means: Measure the means of input channels, too.
    """

    method: Method
    grid: IntegerGrid
    percentile: float = 99.99
    averaging: float = 0.01
    means: bool = False


@dataclass(frozen=True, slots=True)
class Calibration:
    """Result of a calibration; names are values of the graph.

    Attributes:
        samples: Number of feeds that were run.
        seen: Name -> [least, greatest], float32.
        ranges: Name -> the range to quantize, within what was seen.
        clipped: Name -> share of its values outside of the range; only where that is above 0.
        unbounded: Values that held a mask's huge or infinite number, sorted.
        narrowest: Name -> width of the narrowest part of a value of the graph's tail.
        means: Name -> mean of each channel, of the values that are multiplied with weights; empty
            unless asked for.
    """

    samples: int
    seen: dict[str, Range]
    ranges: dict[str, Range]
    clipped: dict[str, float]
    unbounded: tuple[str, ...]
    narrowest: dict[str, float]
    means: dict[str, np.ndarray]


def calibrate(
    load: Callable[[], onnx.ModelProto],
    feeds: Iterable[Feeds],
    rule: Rule,
    *,
    scratch: Path,
    where: str,
) -> Calibration:
    """Run a model on feeds, twice where histograms are needed, and draw each value's range.

    The first pass finds least and greatest values, the second counts values between them. Feeds
    are taken once; for the second pass they are kept in `scratch`. Memory is that of one sample.

    Args:
        load: Gives the model anew: every value typed, weights loaded.
        rule: Method of drawing ranges.
        scratch: A folder for augmented models and feeds.
        where: `recipe:step`, for messages.

    Raises:
        StepError: A value is NaN, or ONNX Runtime fails on a sample.
    """
    from onnxbuild.onnxkit.calibrate.channel_statistics import measure_channel_means

    stage("pass 1 of 2" if rule.method != "minmax" else "")
    kept_feeds = FeedCache(scratch / "feeds")
    found = measure_ranges(
        load(),
        kept_feeds.keep(feeds) if rule.means or rule.method != "minmax" else feeds,
        scratch=scratch,
        where=where,
        averaging=rule.averaging,
    )
    unbounded = tuple(sorted(found.unbounded))
    seen = dict(sorted(found.bounds.items()))
    means: dict[str, np.ndarray] = {}
    if rule.means:
        means = measure_channel_means(load(), kept_feeds, scratch=scratch, where=where)
    if rule.method == "minmax":
        return Calibration(found.samples, seen, dict(seen), {}, unbounded, found.narrowest, means)
    stage("pass 2 of 2")
    histograms = measure_histograms(
        load(),
        kept_feeds,
        {n: histogram_bounds(each, rule.grid) for n, each in seen.items() if each[0] < each[1]},
        scratch=scratch,
        where=where,
    )
    ranges, clipped = dict(seen), {}
    for name, histogram in histograms.items():
        if rule.method == "moving_average":
            ranges[name] = found.averages[name]
        else:
            ranges[name] = choose_range(
                rule.method, histogram, seen[name], rule.grid, percentile=rule.percentile
            )
        share = clipped_share(histogram, ranges[name])
        if share > 0:
            clipped[name] = share
    return Calibration(found.samples, seen, ranges, clipped, unbounded, found.narrowest, means)
