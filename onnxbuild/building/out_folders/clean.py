"""Remove the folders below out/ whose recipe or variant is gone, and nothing that a user put there."""

import contextlib
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import store_error, write_atomically
from onnxbuild.adapters.disk.locks import try_lock, wait_lock
from onnxbuild.adapters.disk.plain_files import check_no_links
from onnxbuild.adapters.disk.statcache import hash_file
from onnxbuild.adapters.locate import environment
from onnxbuild.adapters.store.disk_views import laid_files, view_places
from onnxbuild.adapters.store.folder_replacement import tidy
from onnxbuild.adapters.store.laid_files import Own, is_file_inside, others
from onnxbuild.building.out_folders.claim import note_owners
from onnxbuild.building.out_folders.owners import (
    Leftover,
    leftovers,
    owners_file,
    owners_text,
    read_owners,
)
from onnxbuild.building.request import Request, graph_of, load
from onnxbuild.core.errors import BuildError, StoreError
from onnxbuild.document.recipe_names import RecipeName
from onnxbuild.plugins.bring import bring_plugins
from onnxbuild.recipe.load import names_in
from onnxbuild.recipe.requested import project_recipes


@dataclass(frozen=True, slots=True)
class Cleaned:
    """One folder that was left over.

    Attributes:
        folder: Its path.
        why: Why it was left over, as it follows the path.
        size_bytes: Of the files of onnxbuild's own in it.
        kept: Files in it that stay, which onnxbuild did not make, or which were changed since.
    """

    folder: Path
    why: str
    size_bytes: int
    kept: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class CleanReport:
    """Result of `clean`.

    Attributes:
        cleaned: The folders.
        unread: A sentence for each recipe that can't be read, whose folders stay.
    """

    cleaned: tuple[Cleaned, ...]
    unread: tuple[str, ...]


def clean(root: Path, project: Path, *, dry_run: bool) -> CleanReport:
    """Remove the folders below out/ that no recipe of the project has any more.

    Args:
        dry_run: Say what would be removed, and remove nothing.

    Raises:
        StoreError: A build is running, or a folder can't be removed.
    """
    lock = try_lock(root / "locks" / "store")
    if lock is None:
        raise StoreError(
            "a build is running in this store",
            where=str(root),
            fix="wait for it, then run clean again",
        )
    try:
        bring_plugins(project)
        unread = tuple(_look_again(root, project))
        moved = {
            name
            for file in project_recipes(project)
            for name in names_in(Path(file), environment())
        }
        found = [
            each
            for each in leftovers(root, project)
            if not (each.is_gone and RecipeName.parse(each.recipe).base in moved)
        ]
        cleaned = tuple(_clean(root, each, dry_run=dry_run) for each in found)
        if not dry_run:
            _forget(root, found)
    finally:
        lock.release()
    return CleanReport(cleaned, unread)


def _look_again(root: Path, project: Path) -> Iterator[str]:
    """Note what the recipes have now; yield a sentence for each that can't be read."""
    here = os.path.realpath(project)
    owners = [each for each in read_owners(root).values() if not each.is_set]
    files = {each.path(root) for each in owners if os.path.realpath(root / each.project) == here}
    for file in sorted(files):
        if not file.is_file():
            continue
        request = Request((file,), store=str(root))
        try:
            loaded = load(request)
            note_owners(root, request, loaded, graph_of(request, loaded))
        except BuildError:
            shown = os.path.relpath(file)
            command = f"onnxbuild lint {shlex.quote(shown)}"
            yield f"{shown} can't be read, so its folders stay; to see why: {command}"


def _clean(root: Path, each: Leftover, *, dry_run: bool) -> Cleaned:
    folder = root / "out" / each.recipe / each.folder
    places = view_places(root, each.recipe, each.folder)
    check_no_links(root, folder)
    check_no_links(root, places.staging)
    lock = wait_lock(places.lock)
    try:
        if not dry_run:
            tidy(folder, places.staging, root / "quarantine", keep_s=0)
        laid = laid_files(places.state)
        own = {
            name
            for name, sha256 in laid.items()
            if is_file_inside(folder, name) and hash_file(str(folder / name)) == sha256
        }
        size_bytes = sum((folder / name).lstat().st_size for name in own)
        parts = Own.of(own)
        kept = tuple(sorted(folder / name for name, _ in others(folder, parts)))
        if not dry_run:
            for name in own:
                (folder / name).unlink()
            for name in (*sorted(parts.folders, reverse=True), "", ".."):
                with contextlib.suppress(OSError):  # it holds what is kept, or is not there
                    Path(os.path.normpath(folder / name)).rmdir()
            places.state.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                places.state.parent.rmdir()
    except OSError as error:
        raise store_error(error, error.filename or folder) from error
    finally:
        lock.release()
    why = f"{each.file} is gone" if each.is_gone else f"{each.file} no longer has it"
    return Cleaned(folder, why, size_bytes, kept)


def _forget(root: Path, found: list[Leftover]) -> None:
    """Take the folders off the list of owners."""
    gone = {(each.recipe, each.folder) for each in found}
    if not gone:
        return
    lock = wait_lock(root / "locks" / "owners")
    try:
        owners = read_owners(root)
        for name, folder in gone:
            owner = owners[name]
            owner.folders, owner.left = owner.folders - {folder}, owner.left - {folder}
        left = {name: each for name, each in owners.items() if each.folders or each.left}
        write_atomically(owners_file(root), owners_text(left), root / "tmp")
    finally:
        lock.release()
