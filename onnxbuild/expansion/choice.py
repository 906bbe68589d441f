"""What a feature says of its choices by measurement: which steps make them, and what each is of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice that a step of a variant makes by measuring, and that a lock keeps.

    Attributes:
        kind: The step kind; its metric `chosen` is the choice as text.
        is_model: The choice is how the variant's model is made: locks name it `RECIPE:VARIANT`. Else
            it is how the model is run, and has the step's own name.
    """

    kind: str
    is_model: bool = False
