"""Plan of a reference, for any frontend: its address, and the axes and points that it is computed on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from onnxbuild.core.graph import StepAddress
from onnxbuild.core.recipe import Axis, Entrypoint, Recipe, Variant
from onnxbuild.expansion.addresses import of_variant, shared
from onnxbuild.onnxkit.data.reference_feeds import ReferenceOptions


def taken_axes(axes: Sequence[Axis], fixed: Mapping[str, int]) -> tuple[Axis, ...]:
    """The axes of a model that takes some sizes alone.

    Args:
        fixed: Axis -> the one size of it.
    """
    return tuple(
        Axis(each.name, *(fixed[each.name],) * 3) if each.name in fixed else each for each in axes
    )


SECTION = "reference"


@dataclass(frozen=True, slots=True)
class ReferencePlan:
    """Address and parameters of a reference step.

    Attributes:
        address: Its own where some axes are fixed for a variant; else all that need it share one.
        axes: As it takes them.
        samples: The callable of real samples; None for none.
        options: The recipe's, without points that the fixed axes rule out.
    """

    address: StepAddress
    axes: tuple[Axis, ...]
    samples: Entrypoint | None
    options: ReferenceOptions


def reference_plan(
    recipe: Recipe, variant: Variant | None, fixed: Mapping[str, int]
) -> ReferencePlan:
    """Plan the reference of a variant, or the one that all share.

    Real samples have sizes of their own, and are left out where axes are fixed.

    Args:
        variant: Whose it is, if some axes are fixed.
        fixed: Axis -> the one size of it.
    """
    options = recipe.section(SECTION, ReferenceOptions)
    if fixed:
        points = tuple(
            point
            for point in options.points
            if all(point.get(axis, size) == size for axis, size in fixed.items())
        )
        options = replace(options, points=points)
    return ReferencePlan(
        of_variant(recipe, variant, SECTION)
        if fixed and variant is not None
        else shared(recipe, SECTION),
        taken_axes(recipe.axes, fixed),
        None if fixed else recipe.entrypoints.get("samples"),
        options,
    )
