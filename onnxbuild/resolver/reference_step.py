"""The step that runs PyTorch at the reference points; all that need it share one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from onnxbuild.core.graph import OutputRef
from onnxbuild.core.recipe import Axis, Recipe, Variant
from onnxbuild.resolver.addresses import of_variant, shared
from onnxbuild.resolver.assembly import Assembly
from onnxbuild.resolver.sections import typed
from onnxbuild.steps import reference

_NONE: Mapping[str, int] = MappingProxyType({})


def add_reference(
    assembly: Assembly,
    recipe: Recipe,
    variant: Variant | None = None,
    fixed: Mapping[str, int] = _NONE,
) -> OutputRef:
    """Add a recipe's reference step, or find it again.

    Args:
        assembly: Where it goes.
        recipe: Whose.
        variant: One that takes some sizes alone; None for all others.
        fixed: Axis -> that size. Real samples have sizes of their own, and are left out.

    Returns: PyTorch's inputs and outputs at several points.
    """
    options: reference.ReferenceOptions = typed(recipe.sections["reference"])
    if fixed:
        points = tuple(
            point
            for point in options.points
            if all(point.get(axis, size) == size for axis, size in fixed.items())
        )
        options = replace(options, points=points)
    step = assembly.step(
        of_variant(recipe, variant, "reference")
        if fixed and variant is not None
        else shared(recipe, "reference"),
        reference.KIND.name,
        reference.ReferenceParams(
            model=recipe.model,
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            axes=taken_axes(recipe.axes, fixed),
            samples=None if fixed else recipe.entrypoints.get("samples"),
            options=options,
        ),
        recipe.lines.get("reference", recipe.location),
    )
    return OutputRef(step, "reference")


def taken_axes(axes: Sequence[Axis], fixed: Mapping[str, int]) -> tuple[Axis, ...]:
    """The axes of a model that takes some sizes alone.

    Args:
        axes: The recipe's.
        fixed: Axis -> the one size of it.
    """
    return tuple(
        Axis(each.name, *(fixed[each.name],) * 3) if each.name in fixed else each for each in axes
    )
