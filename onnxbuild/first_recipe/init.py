"""Verb `init`: look at a source, write its recipe; or write a small whole project."""

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.adapters import locate, machine
from onnxbuild.adapters.disk.atomic_files import fsync_folder, is_full, store_error, temp_name
from onnxbuild.building.request import Loaded, Request, check_points, graph_of, remarks_of
from onnxbuild.core.draft import Draft
from onnxbuild.core.errors import BuildError, UsageError
from onnxbuild.core.recipe import Recipe
from onnxbuild.first_recipe.data_stubs import data_stubs
from onnxbuild.first_recipe.draft import (
    recipe_of_callable,
    recipe_of_file,
    recipe_of_whole,
    whole_of,
)
from onnxbuild.first_recipe.project import project_files
from onnxbuild.first_recipe.recipe_text import FirstRecipe, Reader
from onnxbuild.first_recipe.source import Callable, as_name, find_source, name_of
from onnxbuild.plugins.bring import bring_plugins, refuse_faulty
from onnxbuild.project_folder import find_project, is_marked, root_reason
from onnxbuild.recipe.parts.keys import COMPONENTS, NAME, PATTERN_WORDS
from onnxbuild.recipe.templates.extend import absolute


@dataclass(frozen=True, slots=True)
class Written:
    """Files that were written, and what to say of them.

    Attributes:
        files: Paths, as a person here would type them.
        recipe: The recipe's.
        about: Lines to say of it.
        holes: Lines to fill in.
        next_command: To type now.
    """

    files: tuple[Path, ...]
    recipe: Path
    about: tuple[str, ...]
    holes: tuple[int, ...]
    next_command: str


def write_recipe(
    text: str,
    *,
    name: str | None,
    options: Mapping[str, Any],
    output: str | None,
    inputs: str | None,
    files: tuple[str, ...],
    timeout_s: float,
) -> Written:
    """Write the first recipe of a source.

    Args:
        name: The recipe's; None for the source's own.
        options: Keys next to the file's in `model`.
        output: The recipe's path; None for recipes/NAME.yaml.
        inputs: FILE.py:CALLABLE that gives examples of a callable's inputs; None without one.
        files: Files and folders outside of the project that a callable reads.
        timeout_s: Wall time that a callable may take.

    Raises:
        UsageError: There is no such source, it is no model, or the recipe exists.
        StepError: The callable raises, or returns no model.
    """
    if name is not None:
        _check_name(name)
    refuse_faulty(bring_plugins(find_project(Path("recipe.yaml"))))
    source = find_source(text)
    called = name or name_of(source)
    path = Path(output) if output else Path("recipes", f"{called}.yaml")
    refuse_existing(path)
    project = find_project(path)
    reader = Reader(absolute(path), absolute(project), locate.environment())
    head = f"The first recipe of {text}, by `onnxbuild init`; `onnxbuild explain {path}` prints it in full."
    if isinstance(source, Callable):
        for key in options:  # the first
            option = f"--{key.replace('_', '-')}"
            raise UsageError(f"{option} is for a model's file", fix=f"leave `{option}` out")
        made = recipe_of_callable(
            reader,
            source,
            called,
            head,
            inputs=None if inputs is None else _examples(inputs),
            outside=files,
            timeout_s=timeout_s,
        )
    elif files or inputs is not None:
        option = "--files" if files else "--inputs"
        raise UsageError(f"{option} is for a callable", fix=f"leave `{option}` out")
    elif (whole := whole_of(reader, source)) is not None:
        for key in options:  # the first
            raise UsageError(
                f"--{key.replace('_', '-')} is for one model, and {text} holds several",
                fix=f"leave `--{key.replace('_', '-')}` out",
            )
        return _write_whole(reader, path, whole, called, head)
    else:
        made = recipe_of_file(reader, source, called, options, head, timeout_s=timeout_s)
    remarks = _checked(path, made)
    stubs = path.parent / reader.stubs.name
    new = {path: made.text}
    # stubs that are there are the user's own by now
    if len(made.recipes) == 1 and not os.path.lexists(stubs):
        new[stubs] = data_stubs(made.recipes[0], path.name)
    put_files(new)
    about = [*(line for each in made.recipes for line in _about(each)), *remarks]
    return _written(tuple(new), path, about, made, project)


def _write_whole(reader: Reader, path: Path, whole: Draft, name: str, head: str) -> Written:
    """Write the recipe of several models, and the code that it names, which must be there as the recipe is read."""
    code = path.parent / reader.code.name
    new = {} if os.path.lexists(code) else {code: whole.code}  # else it is the user's own by now
    put_files(new)
    with ExitStack() as undo:
        for each in new:
            undo.callback(each.unlink)
        made = recipe_of_whole(reader, whole, name, head)
        remarks = [*_checked(path, made)]
        put_files({path: made.text})
        undo.pop_all()
    about = [f"components: {', '.join(whole.recipe[COMPONENTS])}", *remarks]
    return _written((path, *new), path, about, made, reader.project)


def _written(
    files: tuple[Path, ...], path: Path, about: list[str], made: FirstRecipe, project: Path
) -> Written:
    if not is_marked(project):
        about.append(f"note: {root_reason(project)}")
    return Written(
        files, path, tuple(about), made.holes, f"onnxbuild run {shlex.quote(str(path))}"
    )


def _about(recipe: Recipe) -> Iterator[str]:
    """Yield lines on a recipe, or on a component."""
    state = {each.name: each.fed_by for each in recipe.inputs if each.fed_by}
    fed = [each.name for each in recipe.inputs if each.name not in state]
    given = [each for each in recipe.outputs if each not in state.values()]
    of = f"{recipe.component}: " if recipe.component else ""
    yield f"{of}{len(fed)} input{'s' * (len(fed) != 1)}: {', '.join(fed)}"
    yield f"{of}outputs: {', '.join(given) or 'all'}"
    if state:
        yield f"{of}state: {len(state)} tensors that go out and come in again"


def write_project(name: str | None) -> Written:
    """Write a small whole project in this folder.

    Args:
        name: Of its recipe; None for the folder's own.

    Raises:
        UsageError: The folder is not empty.
    """
    here = Path.cwd()
    others = sorted(each.name for each in here.iterdir() if not _may_stay(each.name))
    if others:
        shown = ", ".join(others[:4]) + (", ..." if len(others) > 4 else "")  # noqa: PLR2004
        raise UsageError(
            f"without a source `init` writes a whole project, and this folder has {shown}",
            fix="name a source, `onnxbuild init MODEL.onnx` or `onnxbuild init FILE.py:CALLABLE`, or "
            "start in an empty folder",
        )
    if name is not None:
        _check_name(name)
    called = name or as_name(here.name)
    files = {Path(path): content for path, content in project_files(called).items()}
    for path in files:
        refuse_existing(path)
    put_files(files)
    recipe = Path("recipes", f"{called}.yaml")
    about = ("a recipe, its model in Python, and a workflow that builds it for each commit",)
    return Written(tuple(files), recipe, about, (), f"onnxbuild run {shlex.quote(str(recipe))}")


def _examples(text: str) -> Callable:
    """Return the callable that gives examples of inputs.

    Raises:
        UsageError: There is none of that name.
    """
    if not text.rpartition(":")[0].endswith(".py"):
        raise UsageError(
            f"--inputs is '{text}'; expected FILE.py:CALLABLE",
            fix="name a function that returns {name: array}",
        )
    found = find_source(text)
    assert isinstance(found, Callable)
    return found


def _may_stay(name: str) -> bool:
    """Return whether a new repository, or an environment, has a file of this name."""
    return name.startswith(".") or re.fullmatch(r"(README|LICENSE)(\..*)?", name) is not None


def _check_name(name: str) -> None:
    if not re.fullmatch(NAME.removeprefix("^").removesuffix("$"), name):
        raise UsageError(
            f"'{name}' can be no recipe's name; expected {PATTERN_WORDS[NAME]}",
            fix=f"write `--name {as_name(name)}`",
        )


def _checked(path: Path, made: FirstRecipe) -> Iterator[str]:
    """Check as `lint` does: raise what is wrong, return what is doubtful."""
    loaded = Loaded({path: made.recipes}, {})
    graph_of(Request((path,)), loaded)
    check_points(loaded, machine.memory_bytes())
    return (f"note: {remark}" for remark in remarks_of(loaded))


def refuse_existing(path: Path) -> None:
    """See that nothing is at a path.

    Raises:
        UsageError: Something is.
    """
    if os.path.lexists(path):
        raise UsageError(
            f"{path} exists, and nothing is overwritten",
            fix=f"write another with `-o OTHER.yaml`, or remove it: `rm {path}`",
        )


def put_files(files: Mapping[Path, str]) -> None:
    """Write files, with the folders above them; after an error nothing of it is left.

    Raises:
        UsageError: Something is at one of the paths, or nothing can be written there.
        StoreError: The disk is full.
    """
    put: list[Path] = []
    folders: list[Path] = []
    try:
        for path, content in files.items():
            try:
                folders += _make_folders(path.parent)
                _put_file(path, content)
            except OSError as error:
                raise _refused(error, path) from error
            put.append(path)
    except BaseException:
        for path in put:
            path.unlink(missing_ok=True)
        for folder in reversed(folders):
            folder.rmdir()
        raise


def _refused(error: OSError, path: Path) -> BuildError:
    """The error by the path that was asked for: drafts have names that nobody knows."""
    if is_full(error):
        return store_error(error, path)
    return UsageError(
        f"can't write {path}: {error.strerror or error}",
        fix="write into another folder, or make this one writable",
    )


def _make_folders(folder: Path) -> list[Path]:
    """Make a folder and those above it; return the new ones, the outermost first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir()
    return missing[::-1]


def _put_file(path: Path, content: str) -> None:
    draft = path.parent / f".{temp_name()}"
    try:
        with draft.open("xb") as file:
            file.write(content.encode())
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)  # fails where something is
        except FileExistsError:
            refuse_existing(path)
            raise
        except (PermissionError, NotImplementedError):  # a filesystem without links
            refuse_existing(path)
            draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
    fsync_folder(path.parent)
