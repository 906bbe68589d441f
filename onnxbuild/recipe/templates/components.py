"""`components`: a recipe of several models -> one tree for each, over the keys that they share."""

from collections.abc import Iterator

from onnxbuild.core.axis import symbols_of
from onnxbuild.document.faults import Fault
from onnxbuild.document.node import Member, Node, mapping
from onnxbuild.recipe.parts.keys import COMPONENTS, of_the_whole
from onnxbuild.recipe.templates.extend import merge

_AXES = "dynamic_axes"
_WITH_SHAPES = ("dummy_inputs", "state")


def component_trees(root: Node) -> list[tuple[str, Node]]:
    """(component, its tree), in the order written; the recipe itself, without a name, where it has no components.

    A component's keys are merged over those next to `components` as a recipe's are over its base's.

    Args:
        root: Bases merged, templates as they are.
    """
    components = root.child(COMPONENTS)
    if components is None:
        return [("", root)]
    shared = mapping({k: m for k, m in root.members.items() if k != COMPONENTS}, root.at)
    own = {name: each.node for name, each in components.members.items() if each.node.members}
    return [(name, merge(shared, node)) for name, node in own.items()]


class SharedAxes:
    """`dynamic_axes` next to `components`: each component has those that its shapes name.

    Args:
        root: The recipe, with `components` or without.
    """

    def __init__(self, root: Node) -> None:
        axes = root.child(_AXES) if COMPONENTS in root.members else None
        self._shared = {} if axes is None else {n: m.at for n, m in axes.members.items()}
        self._named: set[str] = set()

    def fitting(self, component: Node) -> Node:
        """Return a component without the shared axes that no shape of it names.

        All stay if a shape names an axis that is not there: one of them may be meant.

        Args:
            component: Merged and rendered, with what its model's file says.
        """
        axes = component.child(_AXES)
        if axes is None or not self._shared:
            return component
        named = {
            symbol
            for key in _WITH_SHAPES
            for each in (component.child(key) or Node(component.at, None)).members.values()
            for size in (each.node.child("shape") or component).items
            if isinstance(size.value, str)
            for symbol in symbols_of(size.value)
        }
        self._named |= named
        if not named <= axes.members.keys():
            return component
        kept = {
            name: each
            for name, each in axes.members.items()
            if name in named or self._shared.get(name) != each.at
        }
        at = component.members[_AXES].at
        return mapping(
            {**component.members, _AXES: Member(at, mapping(kept, axes.at))}, component.at
        )

    def faults(self) -> Iterator[Fault]:
        """Yield the shared axes that no component's shapes name."""
        for name, at in self._shared.items():
            if name not in self._named:
                what = f"axis '{name}' is used by no shape of any component"
                yield Fault(what, at, "remove it, or use it in a shape", (_AXES, name))


def component_faults(root: Node) -> Iterator[Fault]:
    """Yield keys that belong to the whole and stand in a component, and a model that stands next to them."""
    components = root.child(COMPONENTS)
    if components is None:
        return
    for name, component in components.members.items():
        for key in of_the_whole():
            if key in component.node.members:
                what = f"component '{name}' has `{key}`, which belongs to the whole recipe"
                fix = f"move it next to `{COMPONENTS}`, or remove it"
                at = component.node.members[key].at
                yield Fault(what, at, fix, (COMPONENTS, name, key))
    if "model" in root.members:
        what = f"`model` is next to `{COMPONENTS}`; each component has its own"
        fix = f"move it into a component: `{COMPONENTS}: {{NAME: {{model: ...}}}}`"
        yield Fault(what, root.members["model"].at, fix, ("model",))
