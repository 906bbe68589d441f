"""Names and versions of npm packages.

Sources: npm's documentation of package.json (`name`, `version`), Semantic Versioning 2.0.0.
"""

from __future__ import annotations

import re

VARIANT = "{variant}"
"""Stands for the variant's name in that of a package."""

_PART = r"[a-z0-9][a-z0-9._~-]*"
_NAME = re.compile(rf"(?:@{_PART}/)?{_PART}")
_MOST = 214
_NUMBER = r"(?:0|[1-9]\d*)"
_VERSION = re.compile(
    rf"{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-(?:{_NUMBER}|\d*[A-Za-z-][0-9A-Za-z-]*)(?:\.(?:{_NUMBER}|\d*[A-Za-z-][0-9A-Za-z-]*))*)?"
    r"(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)
_TAKEN = frozenset({"node_modules", "favicon.ico", "node", "fs", "path", "http", "https", "os", "util", "test"})  # fmt: skip
"""Names that npm refuses, and those of Node's own modules that are likely ones of models."""


def is_name(text: str) -> bool:
    """Return whether an npm package may have this name."""
    return len(text) <= _MOST and text not in _TAKEN and _NAME.fullmatch(text) is not None


def is_version(text: str) -> bool:
    """Return whether this is a version by Semantic Versioning, as npm wants it."""
    return _VERSION.fullmatch(text) is not None


def package_name(recipe: str, bundle: str, pattern: str) -> str:
    """Return a package's name: in lower case, with `-` for what npm does not take.

    Args:
        recipe: The recipe's name.
        bundle: Of what is packaged, `int8`.
        pattern: As the recipe has it; empty for `RECIPE-BUNDLE`.
    """
    if pattern:
        return pattern.replace(VARIANT, mapped(bundle))
    return mapped(f"{recipe}-{bundle}")


def mapped(text: str) -> str:
    """Return text as a part of a name."""
    found = re.sub(r"[^a-z0-9._~-]+", "-", text.lower()).strip("-._~")[:_MOST]
    return f"model-{found}" if not found or found in _TAKEN else found
