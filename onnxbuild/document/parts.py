"""The parts of a recipe, as far as they could be read, and the fault of a part that needs another frontend."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from onnxbuild.core.recipe import (
    FRONTEND,
    ONNX,
    Axis,
    DummyInput,
    Entrypoint,
    Format,
    Location,
    Variant,
)
from onnxbuild.core.target import Target, TargetGates
from onnxbuild.document.faults import Fault
from onnxbuild.document.node import Node, Path, dotted, locate, locate_key


@dataclass(slots=True)
class Parts:
    """The parts of a recipe that could be read; parts with faults are left out.

    Attributes:
        unsound: Paths with faults, on whose absence nothing may be concluded.
        module_frontends: The frontends whose model is a torch.nn.Module, the one to name in messages first.
    """

    root: Node
    unsound: set[Path] = field(default_factory=set)
    module_frontends: tuple[str, ...] = ()
    inputs: dict[str, DummyInput] = field(default_factory=dict)
    axes: dict[str, Axis] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    variants: dict[str, Variant] = field(default_factory=dict)
    formats: dict[str, Format] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    gates: dict[str, TargetGates] = field(default_factory=dict)
    sections: dict[str, object] = field(default_factory=dict)
    entrypoints: dict[str, Entrypoint] = field(default_factory=dict)

    def sound(self, *path: str | int) -> bool:
        """Return whether nothing at, above or below `path` has a fault."""
        return not any(bad[: len(path)] == path or path[: len(bad)] == bad for bad in self.unsound)

    def node(self, *path: str) -> Node | None:
        """The value at `path`, where there is one."""
        node: Node | None = self.root
        for key in path:
            node = None if node is None else node.child(key)
        return node

    def lacks(self, *path: str) -> bool:
        """Return whether nothing stands at `path`, and no fault in its section can be why."""
        return self.node(*path) is None and self.sound(path[0])

    def declared(self, key: str) -> tuple[str, ...]:
        """The names below a key of the recipe."""
        node = self.node(key)
        return () if node is None else tuple(node.members)

    def at(self, *path: str | int) -> Location:
        """Return where the value at `path` stands, or what is above it."""
        return locate(self.root, path)

    def key_at(self, *path: str | int) -> Location:
        """Return where the key at the end of `path` stands."""
        return locate_key(self.root, path)


def format_nodes(root: Node) -> dict[str, tuple[Location, Node | None]]:
    """Format name -> (where it is asked for, its options if they are written)."""
    formats = root.child("formats")
    if formats is None:
        return {ONNX: (root.at, None)}
    if formats.items:
        return {str(item.value): (item.at, None) for item in formats.items}
    return {name: (member.at, member.node) for name, member in formats.members.items()}


def has_onnx(root: Node) -> bool:
    """Return whether variants are made: `formats` names onnx, or is not written, or can't be read."""
    formats = format_nodes(root)
    return ONNX in formats or not formats


def key_needs_frontend(
    parts: Parts, frontends: str | Sequence[str], *path: str
) -> Iterator[Fault]:
    """Yield a fault if a key is written and the recipe has another frontend.

    Args:
        frontends: The one that has a use for it, or those that have, the one to name first.
    """
    known = _listed(frontends)
    if parts.node(*path) is not None and _frontend(parts) not in known:
        yield _fault(parts, known[0], dotted(path), parts.key_at(*path))


def format_needs_frontend(
    parts: Parts, frontends: str | Sequence[str], name: str
) -> Iterator[Fault]:
    """The same for a format other than ONNX."""
    at, _ = format_nodes(parts.root).get(name, (None, None))
    known = _listed(frontends)
    if at is not None and parts.sound("formats") and _frontend(parts) not in known:
        yield _fault(parts, known[0], f"format '{name}'", at)


def _listed(frontends: str | Sequence[str]) -> Sequence[str]:
    return (frontends,) if isinstance(frontends, str) else frontends


def _frontend(parts: Parts) -> str:
    node = parts.node("frontend")
    return FRONTEND if node is None else str(node.value)


def _fault(parts: Parts, frontend: str, what: str, at: Location) -> Fault:
    return Fault(
        f"{what} needs the frontend '{frontend}'; the recipe has '{_frontend(parts)}'",
        at,
        f"remove it, or write `frontend: {frontend}` with a model of that",
    )
