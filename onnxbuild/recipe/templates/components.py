"""`components`: a recipe of several models -> one tree for each, over the keys that they share."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.document.faults import Fault
from onnxbuild.document.node import Node, mapping
from onnxbuild.recipe.parts.keys import COMPONENTS, of_the_whole
from onnxbuild.recipe.templates.extend import merge


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
