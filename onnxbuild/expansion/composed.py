"""Sections that have a key for each feature of a family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, make_dataclass, replace
from typing import Any

from onnxbuild.expansion.asked import attribute
from onnxbuild.expansion.feature import Section


def composed(section: Section, keys: Mapping[str, tuple[type, str]], module: str) -> Section:
    """A section with more keys, each of which may be left out.

    Args:
        section: Its options are the keys that it has of its own.
        keys: Key -> (options type of what stands below it, help).
        module: Where the new options type can be found again by its name.
    """
    fields: list[tuple[str, Any, Any]] = [
        (attribute(key), options | None, field(default=None, metadata={"help": text, "key": key}))
        for key, (options, text) in keys.items()
    ]
    base = section.options
    made = make_dataclass(
        base.__name__, fields, bases=(base,), namespace={"added": tuple(keys)}, frozen=True
    )
    made.__doc__, made.__module__ = base.__doc__, module
    return replace(section, options=made)
