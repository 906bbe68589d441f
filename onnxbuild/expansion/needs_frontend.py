"""The fault of a key that one frontend alone has a use for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnxbuild.core.recipe import FRONTEND, Location
from onnxbuild.document.faults import Fault
from onnxbuild.document.node import dotted
from onnxbuild.document.parts import Parts, format_nodes


def key_of(parts: Parts, frontends: str | Sequence[str], *path: str) -> Iterator[Fault]:
    """Yield a fault if a key is written and the recipe has another frontend.

    Args:
        parts: The recipe.
        frontends: The one that has a use for it, or those that have, the one to name first.
        path: The key's.
    """
    known = _listed(frontends)
    if parts.node(*path) is not None and _frontend(parts) not in known:
        yield _fault(parts, known[0], dotted(path), parts.key_at(*path))


def format_of(parts: Parts, frontends: str | Sequence[str], name: str) -> Iterator[Fault]:
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
