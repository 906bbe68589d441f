"""A recipe's sections, as the step kinds that they belong to know them."""

from __future__ import annotations

from typing import Any


def typed(options: object) -> Any:
    """A section's options; their type is the step kind's own."""
    return options
