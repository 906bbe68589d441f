"""Values that are not finite: which, where, and whose fault they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError

if TYPE_CHECKING:
    import numpy as np

_ODD: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "NaN": lambda array: array != array,  # noqa: PLR0124 - what NaN is
    "inf": lambda array: array == math.inf,
    "-inf": lambda array: array == -math.inf,
}
"""Kind of value that is not finite -> mask of its elements, the worst kind first."""

LEAST_INSTEAD = "write the dtype's least value instead, `numpy.finfo('float32').min`: two infinities make a NaN"
"""Fix for an -inf in an input that led to a NaN."""


class NotFiniteError(StepError):
    """A model gives NaN or infinity for a sample."""


def refuse_nan(
    outputs: Mapping[str, np.ndarray], point: str, where: str, *, whose: str = "model"
) -> None:
    """Fail on NaN in what the reference itself gives: nothing can be compared with it.

    Args:
        outputs: Output name -> array.
        point: Name of the point at which they were computed.
        where: `recipe:step`, for messages.
        whose: Name of what computed them, for messages.

    Raises:
        StepError: Names the output and the point.
    """
    import numpy as np

    for name, array in outputs.items():
        if array.dtype.kind == "f" and bool(np.isnan(array).any()):
            raise StepError(
                f"output '{name}' of the {whose} itself holds {int(np.isnan(array).sum())} NaN among "
                f"{array.size} elements at point '{point}'",
                where=where,
                fix="mend the model, or give the inputs the values that it expects (`low`, `high`, `fill` in "
                "`dummy_inputs`)",
            )


def odd_values(name: str, array: np.ndarray) -> str:
    """`'x' holds 2 NaN of 8 values, the first at [0, 3]`; empty if all are finite.

    NaN goes before inf, inf before -inf: the first that is found is reported.

    Args:
        name: The array's.
        array: Any dtype.
    """
    import numpy as np

    kind = odd_kind(array)
    if not kind:
        return ""
    found = _ODD[kind](array)
    count, place = int(found.sum()), [int(n) for n in np.argwhere(found)[0]]
    if array.ndim == 0:
        return f"'{name}' is {kind}"
    first = "the first at" if count > 1 else "at"
    return f"'{name}' holds {count} {kind} among {array.size} values, {first} {place}"


def odd_kind(array: np.ndarray) -> str:
    """`NaN`, `inf` or `-inf`, the worst that is there; empty if all are finite."""
    import numpy as np

    if array.dtype.kind != "f" or bool(np.isfinite(array).all()):
        return ""
    return next(kind for kind, test in _ODD.items() if bool(test(array).any()))


def odd_feeds(feeds: Mapping[str, np.ndarray]) -> str:
    """`; its input 'x' holds 1 -inf of 8 values, at [0, 3]`; empty if all are finite."""
    odd = next(filter(None, (odd_values(name, array) for name, array in feeds.items())), "")
    return f"; its input {odd}" if odd else ""


def not_finite(
    outputs: Mapping[str, np.ndarray], item: Mapping[str, np.ndarray], number: int, where: str
) -> NotFiniteError:
    """Return the error for a value that is not finite; it says whether the model or the projection made it."""
    odd = next(filter(None, (odd_values(n, array) for n, array in outputs.items())), "")
    what = f"output {odd}" if odd else "the outputs are finite, the projection's is not"
    cause = odd_feeds(item)
    fix = (
        "look for a division by zero in the projection, such as by a length of 0"
        if not odd
        else LEAST_INSTEAD
        if cause
        else "look for an overflow in the variant, or a row that is masked wholly"
    )
    return NotFiniteError(
        f"item {number} of the data gives a value that is not finite: {what}{cause}",
        where=where,
        fix=fix,
    )
