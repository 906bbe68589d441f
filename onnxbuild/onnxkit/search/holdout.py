"""Data in two halves: what is chosen by the one is judged on the other, so that luck is no quality."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from onnxbuild.onnxkit.accuracy.sample_outputs import SampleErrors

CHOOSING, JUDGING = 0, 1
"""The even and the odd samples: a model is chosen by one half and held to its goal on the other."""

LEAST_SPLIT = 20
"""Least number of samples to split; with fewer, each half is all of them."""


def is_halved(errors: SampleErrors) -> bool:
    """Return whether there are samples enough for two halves."""
    return len(errors.cosines) >= LEAST_SPLIT


def figures_of(
    errors: SampleErrors | None, scored: Mapping[str, Any], half: int
) -> dict[str, Any]:
    """Return a model's values of a goal's measures on one half of the data.

    Args:
        errors: Of its `fidelity` report; None where there is none.
        scored: Its `evaluate` report; empty where there is none.
        half: CHOOSING or JUDGING.

    Returns: samples, cosine_mean, cosine_min, sqnr_db, where there is fidelity data; score of all of
    the evaluation data, drop of the half.
    """
    drops = scored.get("half_drops") or [scored.get("drop")] * 2
    score = {"score": scored.get("score"), "drop": drops[half]}
    if errors is None:
        return score
    found = asdict(errors.fidelity(half, 2) if is_halved(errors) else errors.fidelity())
    names = ("samples", "cosine_mean", "cosine_min", "sqnr_db")
    return {name: found[name] for name in names} | score
