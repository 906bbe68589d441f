"""Keep two recipes of one name from overwriting each other's folders, and note whose each folder is."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import make_folder, write_atomically
from onnxbuild.adapters.disk.locks import wait_lock
from onnxbuild.adapters.locate import environment
from onnxbuild.building.out_folders.owners import (
    Owner,
    laid_folders,
    owners_file,
    owners_text,
    read_owners,
)
from onnxbuild.building.request import Loaded, Request, is_whole
from onnxbuild.core.errors import UsageError
from onnxbuild.core.file_names import same_on_disk
from onnxbuild.core.graph import Graph
from onnxbuild.core.recipe import Recipe
from onnxbuild.document.recipe_names import RecipeName
from onnxbuild.recipe.load import names_in


def refuse_clash(root: Path, project: Path, loaded: Loaded) -> None:
    """Refuse a recipe whose folder below out/ is another's of the same name.

    It is not where the other's file is gone, or holds another name now: that recipe was moved or renamed.

    Args:
        loaded: The recipes that are built.

    Raises:
        UsageError: Two files have recipes of one name.
    """
    owners = read_owners(root)
    on_disk = {same_on_disk(name): name for name in owners}
    for path, recipes in loaded.by_file.items():
        file = _relative(path, project)
        for recipe in recipes:
            taken = (
                recipe.name if recipe.name in owners else on_disk.get(same_on_disk(recipe.name))
            )
            if taken is None or owners[taken].file == file:
                continue
            other = owners[taken].path(root)
            name, theirs = recipe.base, RecipeName.parse(taken).base
            if other.is_file() and theirs in names_in(other, environment()):
                if theirs != name:
                    raise UsageError(
                        f"recipes '{theirs}' ({os.path.relpath(other)}) and '{name}' ({path}) differ only in case, or in "
                        "how an accent is written: on some disks they have one folder",
                        where=str(recipe.location),
                        fix="write another `name:` in one of them",
                    )
                stem = Path(path).stem
                raise UsageError(
                    f"two recipes are named '{name}': {os.path.relpath(other)} and {path}; "
                    f"{os.path.relpath(root / 'out' / recipe.name)} is of the first",
                    where=str(recipe.location),
                    fix=f"write another `name:` in one of them, such as `name: {stem if stem != name else f'{name}-2'}`",
                )


def taken_over(root: Path, project: Path, loaded: Loaded) -> Iterator[str]:
    """Yield a note for each folder below out/ that the same recipe of another checkout made last.

    Both are one recipe, and the folder holds the files of whichever was built last.

    Args:
        loaded: The recipes that are built.
    """
    owners = read_owners(root)
    for path, recipes in loaded.by_file.items():
        file = _relative(path, project)
        for recipe in recipes:
            owner = owners.get(recipe.name)
            if owner is None or owner.file != file:
                continue
            other = os.path.realpath(root / owner.project)
            if other != os.path.realpath(project) and owner.path(root).is_file():
                yield (
                    f"{os.path.relpath(root / 'out' / recipe.name)} is of {owner.path(root)}, which shares this store; "
                    "this build lays its own files there. To have both, give each a store or another `name:`"
                )


def note_owners(root: Path, request: Request, loaded: Loaded, graph: Graph) -> None:
    """Note whose the folders below out/ are, and which of them are left over."""
    folders = {recipe.name: frozenset[str]() for recipe in loaded.recipes}
    for each in graph.deliverables:
        folders[each.recipe] |= {each.name}
    listing = _Listing(root, request, folders)
    lock = wait_lock(root / "locks" / "owners")
    try:
        before = read_owners(root)
        now = dict(before)
        for path, recipes in loaded.by_file.items():
            now |= listing.noted(_relative(path, request.project), recipes, before)
        if now != before:
            make_folder(owners_file(root).parent)
            write_atomically(owners_file(root), owners_text(now), root / "tmp")
    finally:
        lock.release()


class _Listing:
    """Says whose folders are, after a build of a request.

    Args:
        folders: Recipe name -> its folders, as far as they were asked for.
    """

    def __init__(
        self, root: Path, request: Request, folders: Mapping[str, frozenset[str]]
    ) -> None:
        self._root = root
        self._home = os.path.relpath(request.project, root)
        self._folders = folders
        self._is_set = bool(request.settings)
        self._is_whole = is_whole(request) and not self._is_set

    def noted(
        self, file: str, recipes: tuple[Recipe, ...], before: Mapping[str, Owner]
    ) -> dict[str, Owner]:
        """Return who made the folders of a file's recipes, and of those that it held before.

        Args:
            file: Relative to the project's root.
            before: What was noted until now.
        """
        built = [each.name for each in recipes if (self._root / "out" / each.name).is_dir()]
        noted = {name: self._owner(file, name, before.get(name)) for name in built}
        if self._is_whole:  # of a matrix, a combination may be gone
            noted |= {
                name: Owner(self._home, file, frozenset(), self._laid(name))
                for name, old in before.items()
                if (old.file, old.project) == (file, self._home)
                and not (old.is_set or name in self._folders)
            }
        return noted

    def _owner(self, file: str, name: str, old: Owner | None) -> Owner:
        has = self._folders[name]
        if self._is_whole:
            return Owner(self._home, file, has, self._laid(name) - has)
        if old is not None and old.file == file:
            return Owner(self._home, file, old.folders | has, old.left - has, is_set=old.is_set)
        return Owner(self._home, file, has, is_set=self._is_set)

    def _laid(self, name: str) -> frozenset[str]:
        return frozenset(laid_folders(self._root, name))


def _relative(path: Path, project: Path) -> str:
    return os.path.relpath(path, project)
