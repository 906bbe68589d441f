"""Choices that a feature makes by measuring: which steps make them, and what each is of."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TrialFigure:
    """A metric that says how good a trial is, while others still run.

    Attributes:
        metric: Its name, in what a trial's steps measure.
        words: What a person calls it.
        is_loss: The less, the better.
    """

    metric: str
    words: str
    is_loss: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice that a step of a variant makes by measuring, and that a lock keeps.

    Attributes:
        kind: The step kind; its metric `chosen` is the choice as text.
        is_model: The choice is how the variant's model is made: locks name it `RECIPE:VARIANT`. Else
            it is how the model is run, and has the step's own name.
        figures: Of trials: the first that is measured says which is the best so far. Empty if it chooses
            in another way.
        trials: The step's parameters -> trial -> its inputs that are of that trial.
    """

    kind: str
    is_model: bool = False
    figures: tuple[TrialFigure, ...] = ()
    trials: Callable[[Any], Mapping[str, Collection[str]]] = lambda _: {}
