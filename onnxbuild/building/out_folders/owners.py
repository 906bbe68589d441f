"""The list of which recipe file each folder below out/ is of; standard library only, as an up-to-date run reads it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from onnxbuild.adapters.disk.plain_files import parse_json
from onnxbuild.core.file_names import check_part
from onnxbuild.regular_files import read_regular

TYPE_CHECKING = False  # as in typing, which takes longer to import than this
if TYPE_CHECKING:
    from typing import Any

_FILE = "out/.laid/owners.json"
_STATE = ".json"  # of a folder: .laid/RECIPE/VARIANT.json, see disk_views.view_places


class Owner:
    """Recipe that made folders below out/.

    Args:
        project: The project's root, relative to the store.
        file: The recipe's file, relative to the project's root.
        folders: The folders of the recipe when it was last built whole.
        left: Folders of earlier builds that it no longer has.
        is_set: Built with `--set`, so the file may have neither the name nor the variants.
    """

    __slots__ = ("file", "folders", "is_set", "left", "project")

    def __init__(
        self,
        project: str,
        file: str,
        folders: frozenset[str],
        left: frozenset[str] = frozenset(),
        *,
        is_set: bool = False,
    ) -> None:
        self.project = project
        self.file = file
        self.folders = folders
        self.left = left
        self.is_set = is_set

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Owner) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]  # two are compared, none is looked up

    def to_json(self) -> dict[str, Any]:
        """Return it as the list has it."""
        return {
            "project": self.project,
            "file": self.file,
            "folders": sorted(self.folders),
            "left": sorted(self.left),
            "set": self.is_set,
        }

    def path(self, root: Path) -> Path:
        """Return the recipe's file, absolute."""
        return Path(os.path.normpath(root / self.project / self.file))


def owners_file(root: Path) -> Path:
    """Return where a store keeps the list."""
    return root / _FILE


def read_owners(root: Path) -> dict[str, Owner]:
    """Return recipe name -> who made out/NAME; empty where nothing is noted, or the list is damaged."""
    try:
        found = parse_json(read_regular(root / _FILE))
        return {
            name: Owner(
                str(each["project"]),
                str(each["file"]),
                _names(each["folders"]),
                _names(each["left"]),
                is_set=bool(each["set"]),
            )
            for name, each in found.items()
            if check_part(name)
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _names(found: list[str]) -> frozenset[str]:
    return frozenset(check_part(name) for name in found)


def owners_text(owners: Mapping[str, Owner]) -> bytes:
    """Return the list as it is written."""
    return json.dumps({name: owners[name].to_json() for name in sorted(owners)}, indent=1).encode()


class Leftover:
    """A folder below out/ that nothing builds any more.

    Args:
        folder: Name of the folder in the recipe's; all of them are left over where the file is gone.
        file: The recipe's file, relative to the project's root.
        is_gone: Whether that file is gone.
    """

    __slots__ = ("file", "folder", "is_gone", "recipe")

    def __init__(self, recipe: str, folder: str, file: str, *, is_gone: bool) -> None:
        self.recipe = recipe
        self.folder = folder
        self.file = file
        self.is_gone = is_gone


def leftovers(root: Path, project: Path) -> Iterator[Leftover]:
    """Yield the folders below out/ whose recipe's file is gone, or no longer has them.

    Args:
        project: The project's root; what others made in the same store is not looked at.
    """
    here = os.path.realpath(project)
    there: dict[str, bool] = {}
    for name, owner in read_owners(root).items():
        home = os.path.normpath(root / owner.project)
        if home not in there:
            there[home] = os.path.realpath(home) == here
        path = f"{home}{os.sep}{owner.file}"
        if not there[home]:
            continue
        if path not in there:
            there[path] = Path(path).exists()
        for folder in sorted(owner.left if there[path] else owner.folders | owner.left):
            if (root / "out" / name / folder).is_dir():
                yield Leftover(name, folder, owner.file, is_gone=not there[path])


def laid_folders(root: Path, recipe: str) -> list[str]:
    """Return the folders of a recipe that builds laid and that are there, sorted."""
    try:
        with os.scandir(root / "out" / ".laid" / recipe) as entries:
            names = [each.name for each in entries]
    except OSError:
        return []
    found = sorted(name.removesuffix(_STATE) for name in names if name.endswith(_STATE))
    return [name for name in found if (root / "out" / recipe / name).is_dir()]


def leftover_line(root: Path, project: Path, store: str | None = None) -> str:
    """Return what the end of a run says of folders that are left over; empty if none is.

    Args:
        store: `--store`, as it was typed.
    """
    if not (root / _FILE).is_file():
        return ""
    places: dict[str, str] = {}
    for each in leftovers(root, project):
        place = root / "out" / each.recipe / ("" if each.is_gone else each.folder)
        why = "is gone" if each.is_gone else "no longer has it"
        places.setdefault(os.path.relpath(place), f"{each.file} {why}")
    if not places:
        return ""
    import shlex

    first, why = next(iter(places.items()))
    more = f", and {len(places) - 1} more" if len(places) > 1 else ""
    command = "onnxbuild clean" + (f" --store {shlex.quote(store)}" if store else "")
    return f"left over: {first} ({why}){more}; to remove: {command}"
