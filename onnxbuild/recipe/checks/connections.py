"""Whether inputs that are outputs of other components can be: `from: encoder.cross`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnxbuild.core.axis import symbols_of
from onnxbuild.core.recipe import Connection, Recipe
from onnxbuild.document.faults import Fault, choices, hinted, nearest
from onnxbuild.document.recipe_names import RecipeName


def connection_faults(recipes: Sequence[Recipe]) -> Iterator[Fault]:
    """Yield components and outputs that are not there, and axes of one name that have other sizes on the two sides.

    Whether types fit is not known before the models are there: see features/gates/connections.

    Args:
        recipes: All of a file.
    """
    by_name = {each.name: each for each in recipes}
    for recipe in recipes:
        others = [each.component for each in recipes if each.component != recipe.component]
        for each in recipe.connections:
            name = str(RecipeName.parse(recipe.name).sibling(each.component))
            if each.component not in others:
                what = f"input '{each.input}' is from the component '{each.component}', which is not there"
                near = nearest(each.component, others)
                fix = f"write {near or choices(others)}" if others else "remove `from`"
                yield Fault(hinted(what, near), each.location, fix)
            elif each.output not in (source := by_name[name]).outputs:
                yield _no_output(each, source)
            else:
                yield from _axes(each, recipe, source)


def _no_output(each: Connection, source: Recipe) -> Fault:
    known = source.outputs
    near = nearest(each.output, known)
    at = source.lines.get("outputs", source.lines["model"])
    what = f"input '{each.input}' is from '{each.output}', which is no output of '{each.component}' ({at})"
    fix = (
        f"write `from: {each.component}.{near or known[0]}`"
        if known
        else "name it in `outputs` there"
    )
    return Fault(hinted(what, near), each.location, fix)


def _axes(each: Connection, recipe: Recipe, source: Recipe) -> Iterator[Fault]:
    """Yield axes of the input that give it fewer sizes than the other component's axis of that name has."""
    shape = next(given.shape for given in recipe.inputs if given.name == each.input)
    given = {axis.name: axis for axis in source.axes}
    taken = {axis.name: axis for axis in recipe.axes}
    for name in dict.fromkeys(symbol for size in shape for symbol in symbols_of(size)):
        one, other = taken[name], given.get(name)
        if other is not None and not (one.takes(other.min) and one.takes(other.max)):
            at = source.lines[f"dynamic_axes.{name}"]
            yield Fault(
                f"axis '{name}' is {one.rule}; '{each.component}', whose '{each.output}' the input '{each.input}' "
                f"is, gives {other.rule} ({at})",
                recipe.lines[f"dynamic_axes.{name}"],
                f"give '{name}' the same sizes in both, next to `components`",
            )
