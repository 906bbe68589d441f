"""What some axes of a recipe must be declared as, found by running a model."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.axis import Axis


@dataclass(frozen=True, slots=True)
class FoundRule:
    """What some axes must be declared as.

    Attributes:
        what: One sentence.
        fix: What to type.
        axes: Those to write in `dynamic_axes`.
        fixed: Those that take their example alone.
    """

    what: str
    fix: str
    axes: tuple[Axis, ...] = ()
    fixed: tuple[Axis, ...] = ()
