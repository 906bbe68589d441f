"""Names that completion shows."""

from __future__ import annotations


def public_names(value: object) -> list[str]:
    """Return the names that a class and its bases define for others: what `dir()` of a value shows.

    Args:
        value: Any object.
    """
    names = {name for kind in type(value).__mro__ for name in vars(kind)}
    return sorted(name for name in names if not name.startswith("_"))
