"""Pinned results: what a release was made of, kept whatever its age."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import store_error, write_atomically
from onnxbuild.adapters.disk.plain_files import parse_json
from onnxbuild.core.errors import StoreError, UsageError, did_you_mean
from onnxbuild.regular_files import read_regular

_FOLDER = "pins"


def pin(root: Path, name: str, keys: Iterable[str]) -> None:
    """Keep results, and all blobs that they name, until they are unpinned.

    Args:
        name: Whatever holds them, such as a release; an earlier pin of that name is replaced.

    Raises:
        UsageError: The name can't be that of a file.
        StoreError: The store can't be written to.
    """
    content = json.dumps({"name": name, "keys": sorted(set(keys))}, indent=1)
    write_atomically(_path(root, name), content.encode(), root / "tmp")


def unpin(root: Path, name: str) -> None:
    """Let garbage collection have what was pinned under a name.

    Raises:
        UsageError: Nothing is.
        StoreError: The store can't be written to.
    """
    path = _path(root, name)
    try:
        path.unlink()
    except FileNotFoundError:
        known = sorted(each.stem for each in path.parent.glob("*.json"))
        shown = ", ".join(known) or "none"
        raise UsageError(
            f"there is no pin '{name}'; there are: {shown}",
            fix=did_you_mean(name, known) or "see `onnxbuild cache pins`",
        ) from None
    except OSError as error:
        raise store_error(error, path) from error


def pins(root: Path) -> Mapping[str, frozenset[str]]:
    """Name -> pinned keys, sorted by name.

    Raises:
        StoreError: One can't be read: what it keeps is not known, so nothing may be dropped.
    """
    found = {}
    for path in _files(root / _FOLDER):
        try:
            recorded = parse_json(read_regular(path))
            found[str(recorded["name"])] = frozenset(map(str, recorded["keys"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"the pin {path} can't be read",
                where=str(path),
                fix=f"make the release again, or give it up: onnxbuild cache unpin {path.stem}",
            ) from error
    return found


def _files(folder: Path) -> list[Path]:
    """Return the pins' files, sorted.

    Raises:
        StoreError: The folder can't be listed: whether there are any is not known.
    """
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".json")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise store_error(error, folder) from error


def _path(root: Path, name: str) -> Path:
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise UsageError(f"'{name}' can't name a pin", fix="use letters, digits, '-', '_' and '.'")
    return root / _FOLDER / f"{name}.json"
