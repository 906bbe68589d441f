"""Names of a wheel: of the distribution, of the package that is imported, of the file.

Sources: the Python packaging specifications "Names and normalization", "Binary distribution format" and
"Version specifiers".
"""

from __future__ import annotations

import keyword
import re
import sys

from onnxbuild.providers import all_providers

VARIANT = "{variant}"
"""Stands for the variant's name in that of a distribution."""

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def is_name(text: str) -> bool:
    """Return whether a distribution may have this name."""
    return _NAME.fullmatch(text) is not None


def distribution_name(recipe: str, variant: str, pattern: str) -> str:
    """Return a wheel's name.

    Args:
        recipe: The recipe's name.
        variant: The variant's.
        pattern: As the recipe has it; empty for `RECIPE-VARIANT`.
    """
    name = pattern.replace(VARIANT, variant) or f"{recipe}-{variant}"
    return re.sub(r"[^A-Za-z0-9._-]", "-", name).strip("-._")


def import_name(distribution: str) -> str:
    """Return the package that a distribution of this name is imported as.

    It is the normalized name with underscores; `model_` goes before what begins with a digit, and an
    underscore after a word of Python.
    """
    name = re.sub(r"[-_.]+", "_", distribution).lower()
    if name[0].isdigit():
        return f"model_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def taken_by(distribution: str) -> str:
    """Return what an installed wheel of this name would hide or replace; empty if nothing.

    Args:
        distribution: Its name.
    """
    name = import_name(distribution)
    if name in sys.stdlib_module_names:
        return f"Python's own module {name}"
    required = {"numpy", "onnxruntime"} | {each.distribution for each in all_providers()}
    hidden = next((each for each in sorted(required) if each and import_name(each) == name), "")
    return f"{hidden}, which wheels require" if hidden else ""


def wheel_file(distribution: str, version: str) -> str:
    """Return a wheel's file name.

    Args:
        distribution: Its name.
        version: Normalized.
    """
    return f"{_escaped(distribution)}-{version}-py3-none-any.whl"


def info_folder(distribution: str, version: str) -> str:
    """Return the folder of a wheel's metadata."""
    return f"{_escaped(distribution)}-{version}.dist-info"


def _escaped(distribution: str) -> str:
    return re.sub(r"[-_.]+", "_", distribution).lower()
