"""Rule for the sizes of some axes of a recipe, found by running a model."""

from dataclasses import dataclass

from onnxbuild.core.axis import Axis


@dataclass(frozen=True, slots=True)
class FoundRule:
    """Rule for the sizes of some axes, and their declarations that follow from it.

    Attributes:
        what: The rule, in one sentence.
        fix: Text to type in the recipe.
        axes: Axes as they must be declared in `dynamic_axes`.
        fixed: Axes that take no size but their example.
    """

    what: str
    fix: str
    axes: tuple[Axis, ...] = ()
    fixed: tuple[Axis, ...] = ()
