"""`package:NAME/PATH`: a path in an installed Python package, which is found and not imported."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from onnxbuild.core.source_error import SourceError
from onnxbuild.document.faults import show

_PREFIX = "package:"


def is_in_package(text: str) -> bool:
    """Return whether a path as it is written is one in an installed package."""
    return text.startswith(_PREFIX)


def package_path(text: str) -> Path:
    """Return where a path in a package is, absolute; whether it is there is not looked at.

    Args:
        text: `package:NAME/PATH`; NAME is what `import` takes, without dots.

    Raises:
        SourceError: It is no such path, or no such package is installed.
    """
    name, _, below = text.removeprefix(_PREFIX).partition("/")
    if not name.isidentifier() or ".." in Path(below).parts or "\0" in below:
        raise SourceError(
            f"{show(text)} is no path in a package",
            "write `package:NAME/PATH`, NAME as `import` takes it",
        )
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    if not folders:
        raise SourceError(
            f"{show(text)}: no package '{name}' is installed for this Python",
            "install the distribution that has it, by `pip install`",
        )
    return Path(folders[0]).absolute() / below
