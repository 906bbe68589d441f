"""Folders outside the project, under names that mean the same wherever they are.

Recorded paths are relative to the project, or start with the name of such a folder, as in
`<model 1>/weights.bin`; so keys and records hold no path of one machine.
"""

from collections.abc import Mapping

HOME = "<home>"


def place_name(label: str) -> str:
    """The name of a folder outside the project."""
    return f"<{label}>"


def inside_name(path: str) -> str:
    """A path relative to the project, written so that it is never taken for a named folder's."""
    return f"./{path}" if path.startswith("<") else path


def real_path(path: str, folders: Mapping[str, str]) -> str:
    """Return where a recorded path is: absolute, or relative to the project.

    Args:
        path: As recorded; one with a name that is not known stays as it is.
        folders: Name -> absolute folder.
    """
    if not path.startswith("<"):
        return path
    name, slash, rest = path.partition("/")
    folder = folders.get(name)
    return path if folder is None else f"{folder.rstrip('/')}{slash}{rest}"


def for_people(text: str, folders: Mapping[str, str]) -> str:
    """A message in which paths below named folders are written as they are on this machine."""
    for name, folder in folders.items():
        text = text.replace(f"{name}/", f"{folder.rstrip('/')}/")
    return text
