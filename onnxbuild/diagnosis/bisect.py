"""The least number of suspects that must be spared."""

from __future__ import annotations

from collections.abc import Callable


def least_that_passes(most: int, passes: Callable[[int], bool]) -> int | None:
    """The least k of 1..most for which `passes(k)`, if more never hurts; None if none does.

    1, 2, 4, ... are tried until one passes, then the numbers between it and the last that failed.
    """
    failed, k = 0, 1
    while k < most and not passes(k):
        failed, k = k, min(2 * k, most)
    if k == most and not passes(k):
        return None
    while k - failed > 1:
        middle = (failed + k) // 2
        if passes(middle):
            k = middle
        else:
            failed = middle
    return k
