"""Whether inputs that are outputs of other components can be: `from: encoder.cross`."""

from collections.abc import Iterator, Mapping, Sequence

from onnxbuild.core.axis import symbols_of
from onnxbuild.core.recipe import ConnectedInput, Recipe
from onnxbuild.document.faults import Fault, choices, hinted, nearest
from onnxbuild.document.recipe_names import RecipeName


def connection_faults(recipes: Sequence[Recipe]) -> Iterator[Fault]:
    """Yield components and outputs that are not there, circles, and axes that have other sizes on the two sides.

    Whether types fit is not known before the models are there: see features/gates/connections.

    Args:
        recipes: All of a file.
    """
    by_name = {each.name: each for each in recipes}
    yield from _circles(by_name)
    for recipe in recipes:
        others = [each.component for each in recipes if each.component != recipe.component]
        for each in recipe.connections:
            name = str(RecipeName.parse(recipe.name).sibling(each.component))
            if each.component == recipe.component:
                what = f"input '{each.input}' is from its own component, '{each.component}'"
                fix = "name another component, or declare a `state` for what goes round"
                yield Fault(what, each.location, fix)
            elif each.component not in others:
                what = f"input '{each.input}' is from the component '{each.component}', which is not there"
                near = nearest(each.component, others)
                fix = f"write {near or choices(others)}" if others else "remove `from`"
                yield Fault(hinted(what, near), each.location, fix)
            elif each.output not in (source := by_name[name]).outputs:
                yield _no_output(each, source)
            else:
                yield from _axes(each, recipe, source)


def _circles(by_name: Mapping[str, Recipe]) -> Iterator[Fault]:
    """Yield each circle of components once, at the input that closes it."""
    done: set[str] = set()

    def walk(name: str, path: tuple[str, ...]) -> Iterator[Fault]:
        for each in by_name[name].connections if name not in done else ():
            source = str(RecipeName.parse(name).sibling(each.component))
            if source in path and source != name:
                circle = [by_name[one].component for one in (*path[path.index(source) :], source)]
                what = f"components are in a circle: {' <- '.join(circle)}"
                yield Fault(what, each.location, "remove one of the `from`")
            elif source in by_name and source != name:
                yield from walk(source, (*path, source))
        done.add(name)

    for name in by_name:
        yield from walk(name, (name,))


def _no_output(each: ConnectedInput, source: Recipe) -> Fault:
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


def _axes(each: ConnectedInput, recipe: Recipe, source: Recipe) -> Iterator[Fault]:
    """Yield axes of the input that give it fewer sizes than the other component's axis of that name has."""
    shape = next(given.shape for given in recipe.inputs if given.name == each.input)
    given = {axis.name: axis for axis in source.axes}
    taken = {axis.name: axis for axis in recipe.axes}
    for name in dict.fromkeys(symbol for size in shape for symbol in symbols_of(size)):
        one, other = taken[name], given.get(name)
        if other is not None and not (one.takes(other.min) and one.takes(other.max)):
            key = f"dynamic_axes.{name}"
            at = source.lines.get(key, source.lines["model"])
            yield Fault(
                f"axis '{name}' is {one.rule}; '{each.component}', whose '{each.output}' the input '{each.input}' "
                f"is, gives {other.rule} ({at})",
                recipe.lines.get(key, each.location),
                f"give '{name}' the same sizes in both, next to `components`",
            )
