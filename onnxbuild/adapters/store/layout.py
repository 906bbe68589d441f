"""Folders of a store, and whether a folder is one or may become one."""

from pathlib import Path

from onnxbuild.core.errors import StoreError

_BLOBS = "cas/sha256"
FOLDERS = (
    _BLOBS, "ac", "out", "out/.laid", "runs", "quarantine", "tmp", "locks", "pins", "memo",
)  # fmt: skip
"""Folders of a store, in the order in which they are made; the first one marks it."""

MADE_LATER = ("out/.laid", "pins", "memo")
_SWEPT = ("ac", "locks", "memo", "pins", "quarantine", "runs", "tmp")
"""Files of these names come and go; in out/ only those that a list names do."""


def blob_path(root: Path, sha256: str) -> Path:
    """Return where a store has the content with a digest, or would have it."""
    return root / _BLOBS / sha256[:2] / sha256


def record_path(root: Path, key: str) -> Path:
    """Return where a store has the results of a key, or would have them."""
    return root / "ac" / key[:2] / f"{key}.json"


def is_store(folder: Path) -> bool:
    """Return whether a folder is a store, be it without its FORMAT."""
    return (folder / _BLOBS).is_dir()


def is_new(folder: Path) -> bool:
    """Return whether a folder is empty or does not exist yet."""
    try:
        return not any(folder.iterdir())
    except FileNotFoundError:
        return True
    except OSError:
        return False


def refuse_foreign(folder: Path) -> None:
    """Refuse to make a store where one of its folders is there already: runs and `cache gc` would empty it.

    Args:
        folder: One that has no FORMAT.

    Raises:
        StoreError: It is no store, and has files in a folder of such a name.
    """
    taken = [name for name in _SWEPT if (folder / name).is_dir() and not is_new(folder / name)]
    if taken and not is_store(folder):  # in this order: another run may make a store meanwhile
        raise StoreError(
            f"{folder} is no store, and its '{taken[0]}' is not onnxbuild's: a store would remove what is in it",
            fix="choose a new folder: --store FOLDER, or ONNXBUILD_STORE",
        )
