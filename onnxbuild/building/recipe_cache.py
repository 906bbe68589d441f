"""Recipes that were read before, while all that decided them is as it was."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from onnxbuild import __version__
from onnxbuild.adapters import machine
from onnxbuild.adapters.clock import wall_ns
from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.plain_files import parse_json
from onnxbuild.adapters.disk.statcache import ABSENT, StatCache, identity, settled
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.source_digest import NAME_TAG
from onnxbuild.core.file_names import check_part
from onnxbuild.own_folder import IMPORT_ROOT, OWN_FOLDER
from onnxbuild.plugins.bring import plugin_files
from onnxbuild.recipe.load import LoadedRecipes
from onnxbuild.recipe.stored import from_text, to_text
from onnxbuild.regular_files import read_user_file

_READERS = (
    "jinja2",
    "jsonschema",
    "markupsafe",
    "pyyaml",
)  # with others, a recipe may say other things


def _checked(loaded: LoadedRecipes) -> LoadedRecipes:
    """The recipes, if their names can be those of folders.

    Raises:
        ValueError, TypeError, AttributeError: One can't.
    """
    for recipe in loaded.recipes:
        for name in (recipe.name, *(variant.name for variant in recipe.variants)):
            check_part(name)
        for each in recipe.formats:
            check_part(each.name)
    return loaded


def program_files() -> Iterator[str]:
    """This program's own modules, and plug-ins: with other code, a request may end in another way.

    Of a program that was installed from a wheel, RECORD stands for them, as for every distribution.
    """
    yield from plugin_files()
    record = f"{IMPORT_ROOT}/onnxbuild-{__version__}.dist-info/RECORD"
    if os.path.exists(record):  # noqa: PTH110 - as text
        yield record
        return
    for base, folders, names in os.walk(OWN_FOLDER):
        if "__pycache__" in folders:
            folders.remove("__pycache__")
        yield from (f"{base}{os.sep}{name}" for name in names if name.endswith(".py"))


class RecipeCache:
    """Loaded recipes by what was asked for.

    What a recipe says is a function of this program, its files and their bases, the settings, the
    variables that it names, the home folder, the folders that its globs list, and which names the
    files of its entrypoints define.

    Args:
        index: Where they are kept.
        stats: Digests of files; it notes all that is looked at.
    """

    def __init__(
        self,
        index: Index,
        stats: StatCache,
        distributions: Distributions,
        environment: Mapping[str, str],
    ) -> None:
        self._index = index
        self._stats = stats
        self._environment = environment
        self._distributions = distributions

    @cached_property
    def program_files(self) -> tuple[str, ...]:
        """This program's modules and its plug-ins, as they are when the first recipe is asked for."""
        return tuple(sorted(program_files()))

    @cached_property
    def _program(self) -> str:
        """A digest of this program and its plug-ins, as they are when the first recipe is asked for."""
        readers = [self._distributions.digest(name) for name in _READERS]
        modules = [(path, self._stats.look(path)) for path in self.program_files]
        program = [__version__, machine.python_build(), readers, modules]
        return hashlib.sha256(json.dumps(program).encode()).hexdigest()

    def recall(
        self, path: Path, project: Path, settings: Mapping[str, str]
    ) -> LoadedRecipes | None:
        """The recipes of a file as they were read before, if reading it again would change nothing.

        Args:
            settings: `--set`.
        """
        found = self._index.recipes(self._key(path, project, settings))
        if found is None:
            return None
        try:
            witnesses = parse_json(found[0])
            now = self._witnesses({kind: list(witnesses[kind]) for kind in witnesses})
            return _checked(from_text(found[1])) if now == witnesses else None
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            return None  # this program did not write it

    def remember(
        self,
        path: Path,
        project: Path,
        settings: Mapping[str, str],
        loaded: LoadedRecipes,
        *,
        started_ns: int,
    ) -> bool:
        """Keep what was read; returns whether it could be kept.

        Args:
            path: As for `recall`.
            project: As for `recall`.
            settings: As for `recall`.
            started_ns: Wall clock before it was read. A file that has changed since, or so shortly
                before that a second change could hide in the same clock tick, is no witness.
        """
        text = to_text(loaded)
        entrypoints = [
            each
            for recipe in loaded.recipes
            for each in (recipe.model, *recipe.entrypoints.values())
        ]
        code = [path for path, _ in loaded.code]
        looked_at = [str(each) for each in (*loaded.witnesses, *code)]
        if text is None or not all(self._is_settled(each, started_ns) for each in looked_at):
            return False
        witnesses = self._witnesses(
            {
                "files": list(map(str, (*loaded.files, *loaded.models))),
                "folders": list(map(str, loaded.folders)),
                "code": [f"{path}:{name}" for path, name in loaded.code],
                "variables": sorted({name for each in entrypoints for name in each.env}),
            }
        )
        key = self._key(path, project, settings)
        self._index.save_recipes(key, json.dumps(witnesses), text, wall_ns() / 1e9)
        return True

    def _is_settled(self, path: str, started_ns: int) -> bool:
        found = identity(path)
        return found == ABSENT or settled(found, started_ns)

    def _key(self, path: Path, project: Path, settings: Mapping[str, str]) -> str:
        home = os.path.expanduser("~")  # noqa: PTH111 - as text
        where = os.path.abspath(path)  # noqa: PTH100 - resolves `..`, keeps links
        asked = [where, str(project), dict(settings), home, self._program]
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def _witnesses(self, names: Mapping[str, list[str]]) -> dict[str, Any]:
        """Return the current state of everything that decided a recipe."""
        return {
            "files": {path: self._stats.digest(path) for path in names["files"]},
            "folders": {path: self._stats.look(path) for path in names["folders"]},
            "code": {each: self._defines(each) for each in names["code"]},
            "variables": {name: self._environment.get(name) for name in names["variables"]},
        }

    def _defines(self, file_and_name: str) -> str | None:
        """`yes`, `no`, `unknown`; None if there is no such file."""
        path, _, name = file_and_name.rpartition(":")

        def look(path: str) -> str | None:
            from onnxbuild.recipe.declared.definitions import top_level_names

            try:
                names = top_level_names(read_user_file(Path(path)))
            except OSError:
                return None
            return "unknown" if names is None else "yes" if name in names else "no"

        return self._stats.digest(path, f"{NAME_TAG}{name} ", look)
