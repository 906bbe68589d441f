"""Find the recipe files of a folder, or the project's own; refuse files that hold no recipe."""

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from onnxbuild.core.errors import UsageError
from onnxbuild.project_folder import PYPROJECT, RECIPES_FOLDER, find_project, tool_settings

_SUFFIXES = (".yaml", ".yml")
_VERSION = re.compile(rb"^[\"']?version[\"']?\s*:", re.MULTILINE)
_NAME = re.compile(rb"^[\"']?name[\"']?\s*:", re.MULTILINE)
_BASE = re.compile(rb"^[\"']?extends[\"']?\s*:\s*[\"']?([^\"'#\r\n]+)", re.MULTILINE)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a]")
_START_BYTES = 1024
_FIX_DEFAULT = 'write `default = ["recipes"]`: recipe files and folders of them'


def recipes_in(folder: str) -> list[str]:
    """Return the recipes of a folder, sorted; folders in it are not searched.

    A recipe is a YAML file with a `version:`. One without a name that another recipe of the folder
    extends is a base, and left out.

    Raises:
        UsageError: There is none.
    """
    found = _recipes_in(folder)
    if not found:
        raise UsageError(
            f"{folder} holds no recipe (a YAML file with a `version:`)",
            fix=f"if it is a model: onnxbuild init {shlex.quote(str(folder))}; else name the folder that holds them",
        )
    return found


def _recipes_in(folder: str) -> list[str]:
    texts: dict[Path, bytes] = {}
    try:
        paths = sorted(Path(folder).iterdir())
    except OSError:
        return []
    for path in paths:
        if path.suffix in _SUFFIXES and not path.name.startswith(".") and path.is_file():
            try:
                content = path.read_bytes()
            except OSError:
                content = b"version:"  # whoever reads it says what is wrong with it
            if _VERSION.search(content):
                texts[path] = content
    bases = {
        os.path.normpath(path.parent / found[1].decode(errors="replace").strip())
        for path, text in texts.items()
        if (found := _BASE.search(text))
    }
    return [
        str(path)
        for path, text in texts.items()
        if os.path.normpath(path) not in bases or _NAME.search(text)
    ]


def project_recipes(project: Path) -> list[str]:
    """Return the recipes in a project's recipes/, else in its root; empty if there are none."""
    return next(filter(None, map(_recipes_in, _shown([project / RECIPES_FOLDER, project]))), [])


def given_or_default(given: Sequence[str]) -> Sequence[str]:
    """Return the files, folders and names that are given; those of the project where there are none.

    Raises:
        UsageError: One is empty, or none is given and the project has none.
    """
    if (
        "" in given
    ):  # a variable of a shell that is not set: all of the folder is not what was meant
        raise UsageError(
            "the name of a recipe is empty",
            fix="write its file or its name: recipes/bert.yaml, bert",
        )
    return given or default_recipes()


def default_recipes() -> list[str]:
    """Return the files and folders that `default` of `[tool.onnxbuild]` lists, else the project's recipes.

    Raises:
        UsageError: There is none, or the list is faulty.
    """
    project = find_project(Path("recipe.yaml"))
    listed = _listed(project)
    if listed is not None:
        return _shown([project / each for each in listed])
    found = project_recipes(project)
    if not found:
        raise UsageError(
            f"no recipe is given, and {project} holds none in {RECIPES_FOLDER}/",
            fix="onnxbuild run FILE.yaml; a first recipe: onnxbuild init",
        )
    return found


def _listed(project: Path) -> list[str] | None:
    """Return what pyproject.toml lists as `default`; None if it says nothing."""
    path = project / PYPROJECT
    try:
        content = path.read_bytes()
        settings = tool_settings(content, "default")
    except OSError:
        return None
    except ValueError as error:
        raise UsageError(f"it is no TOML: {error}", where=str(path), fix="mend the line") from None
    if "default" not in settings:
        return None
    listed = settings["default"]
    is_list = isinstance(listed, list) and all(isinstance(each, str) for each in listed)
    if not is_list or not listed:
        raise UsageError(
            f"`default` is {listed!r}; expected a list of recipes",
            where=str(path),
            fix=_FIX_DEFAULT,
        )
    for each in listed:
        if not (project / each).exists():
            raise UsageError(
                f"`default` names '{each}', and there is no such file or folder",
                where=str(path),
                fix=_FIX_DEFAULT,
            )
    return list(listed)


def _shown(paths: Sequence[Path]) -> list[str]:
    """Paths as a person in the working folder types them."""
    return [os.path.relpath(path) for path in paths]


def refuse_other_files(path: str) -> None:
    """Refuse a model or Python where a recipe belongs.

    Raises:
        UsageError: It is one; says what makes a recipe of it.
    """
    if path.endswith(_SUFFIXES) or not Path(path).is_file():
        return
    with Path(path).open("rb") as file:
        is_binary = _BINARY.search(file.read(_START_BYTES))
    if path.endswith(".py"):
        raise UsageError(
            f"{path} is Python, not a recipe",
            fix=f"write a first recipe: onnxbuild init {shlex.quote(f'{path}:CALLABLE')}",
        )
    if is_binary:
        raise UsageError(
            f"{path} is a model or other data, not a recipe",
            fix=f"write a first recipe for it: onnxbuild init {shlex.quote(path)}",
        )
