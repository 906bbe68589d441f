"""Recipes' files and names, found without reading YAML: a line `name: NAME` of a file says what it holds."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from onnxbuild.document.recipe_names import RecipeName


def paths(
    word: str, *, endings: tuple[str, ...] = (), folders_only: bool = False
) -> Iterator[str]:
    """Yield the entries of the folder that a word names, folders with a slash at their end.

    Args:
        word: What was typed of a path, `~` allowed. Hidden entries count where its name begins with a dot.
        endings: Files must have one of them; empty for any.
    """
    folder, begun = os.path.split(word)
    head = word[: len(word) - len(begun)]
    try:
        entries = sorted(Path(folder or ".").expanduser().iterdir())
    except (OSError, RuntimeError):  # RuntimeError: a `~user` that there is not
        return
    for entry in entries:
        name = entry.name
        if not name.startswith(begun) or (name.startswith(".") and not begun.startswith(".")):
            continue
        if entry.is_dir():
            yield f"{head}{name}/"
        elif not folders_only and (not endings or name.endswith(endings)):
            yield f"{head}{name}"


_ENDINGS = (".yaml", ".yml")
_FOLDERS = ("recipes", ".")
"""Folders whose recipes are named without a path; see typed_names.find_recipe."""
_NAME = re.compile(rb"^name:[ \t]*(['\"]?)([A-Za-z0-9][\w.-]*)\1[ \t]*(?:#.*)?$", re.MULTILINE)
_VERSION = re.compile(rb"^version:", re.MULTILINE)
_HEAD_BYTES = 16384


def recipe_files(word: str) -> Iterator[str]:
    """Yield the recipes of recipes/ and of this folder, then the YAML files and folders at a typed path."""
    if not word.startswith((".", "/", "~")):
        for path in _here():
            if _head_of(path) is not None:
                yield path.as_posix()
    if word:
        yield from paths(word, endings=_ENDINGS)
    else:
        yield from paths(word, folders_only=True)


def recipe_names() -> list[str]:
    """Return the names of the recipes in recipes/ and in this folder; of a templated one its file's."""
    found = (_name_of(path) for path in _here())
    return sorted({name for name in found if name})


def recipes_named(text: str) -> list[Path]:
    """Return the files that a recipe's name or path means.

    Args:
        text: `bert`, `bert@size=8` or `recipes/bert.yaml`.
    """
    if text.endswith(_ENDINGS):
        return [Path(text)] if Path(text).is_file() else []
    name = RecipeName.parse(text).base
    return [path for path in _here() if _name_of(path) == name]


def _here() -> Iterator[Path]:
    for folder in _FOLDERS:
        yield from sorted(path for path in Path(folder).glob("*.y*ml") if path.suffix in _ENDINGS)


def _head_of(path: Path) -> bytes | None:
    """The first bytes of a recipe's file; None if it does not look like one."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES).replace(b"\r\n", b"\n")
    except OSError:
        return None
    return head if _VERSION.search(head) and b"\nname:" in b"\n" + head else None


def _name_of(path: Path) -> str:
    """The name that a file gives its recipe; empty if it is none."""
    head = _head_of(path)
    if head is None:
        return ""
    said = _NAME.search(head)
    return said[2].decode() if said else path.stem
