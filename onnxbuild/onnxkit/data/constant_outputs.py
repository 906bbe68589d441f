"""Outputs with one value in all elements at all points: a comparison with them shows little of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

_FIX = (
    "if it varies for real inputs, give some: `reference: {samples: FILE.py:CALLABLE}`, or `low` "
    "and `high` of the dummy inputs"
)


class ConstantOutputs:
    """Collects float outputs point by point, and names those that are constant.

    A scalar other than 0 may well be a parameter (CLIP's `logit_scale`), so that it is not named. Ids and flags of
    noise are often all equal, and still the model's answer.
    """

    def __init__(self) -> None:
        self._values: dict[str, float | None] = {}
        self._sizes: dict[str, int] = {}

    def add(self, outputs: Mapping[str, np.ndarray]) -> None:
        """Take a point's outputs into account; arrays of other dtypes than floats are left out."""
        for name, array in outputs.items():
            if array.dtype.kind == "f" and array.size:
                first = float(array.flat[0]) + 0.0  # -0.0 is 0.0
                known = self._values.setdefault(name, first)
                if known is not None and not bool((array == known).all()):
                    self._values[name] = None
                self._sizes[name] = max(self._sizes.get(name, 0), array.size)

    def notes(self) -> tuple[str, ...]:
        """One for each output that has the same value in all elements of all points."""
        return tuple(
            f"output '{name}' is {value:g} in every element at every point: a wrong model may "
            f"give that, too; {_FIX}"
            for name, value in self._values.items()
            if value is not None and (value == 0 or self._sizes[name] > 1)
        )
