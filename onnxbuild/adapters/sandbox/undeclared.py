"""The error for files that a step read and the recipe does not declare: all that are known, and the line to write."""

import ast
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.errors import UndeclaredInputError, listed

_HUB_MODEL = re.compile(r".*/models--[^/]+(?=/(snapshots|blobs|refs)/)")
_SHOWN = 5
_PATH_MAX = 1024
_CODE = (".py", ".yaml", ".yml", ".pyc")


@dataclass(frozen=True, slots=True)
class RefusedStep:
    """The step that a refusal is explained for.

    Attributes:
        step: `recipe:step`.
        project: The project's root.
        recipe: The recipe's file, absolute.
        store: The store's folder; no file in it is an input.
        home: The user's home folder.
        own_home: The step's own home folder, which stands for the user's.
        meant: Returns the path in the project for one in the step's mirror of the project.
        declared: Files that the step's recipe declares, relative to the project.
    """

    step: str
    project: str
    recipe: str
    store: str
    home: str
    own_home: str
    meant: Callable[[str], str] = str
    declared: frozenset[str] = frozenset()


def undeclared_files(
    readers: Mapping[str, str], step: RefusedStep, *, programs: Mapping[str, str] | None = None
) -> UndeclaredInputError:
    """Return the error for files that were read and are not declared, in one message.

    Args:
        readers: Absolute path -> `file:line` of the user's code; empty where it is not known.
        programs: Absolute path -> the program that read it, if that is not the step itself.
    """
    by = {
        step.meant(path): f"read at {who}" if who else _by_program((programs or {}).get(path))
        for path, who in readers.items()
    }
    also = [] if len(by) > _SHOWN else list(_also_named(readers, by, step))
    typed = [_typed(path, step) for path in (*by, *also)]
    whole = _with_folders([*by, *also], step)
    line = _line(typed if len(typed) <= _SHOWN else whole)
    fix = f"declare {_it(typed)} next to the entrypoint that reads {_it(typed)}: {line}"
    if whole != typed and len(typed) <= _SHOWN:
        is_one = len(whole) == 1
        fix += f", or {'the whole folder' if is_one else 'with whole folders'}: {_line(whole)}"
    if any(each.encode(errors="ignore").decode() != each for each in typed):
        fix = "rename it, since no recipe can hold a name that is not UTF-8; then declare it"
    what = _sentence(by, step)
    if also:
        names = listed([f"'{near(path, step.project)}'" for path in also], "and")
        what += f"; the same code names {names}, not declared either"
    return UndeclaredInputError(
        what, where=f"{near(step.recipe, step.project)} ({step.step})", fix=fix
    )


def _by_program(program: str | None) -> str:
    return f"read by {program}" if program else ""


def _it(typed: Sequence[str]) -> str:
    return "it" if len(typed) == 1 else "them"


def _line(typed: Sequence[str]) -> str:
    return f"`files: [{', '.join(dict.fromkeys(typed))}]`"


def _sentence(by: Mapping[str, str], step: RefusedStep) -> str:
    """Say of at most five files that they are read, and by whom."""
    if len(by) == 1:
        ((path, who),) = by.items()
        real = os.path.realpath(path)
        leads_out = is_below(path, step.project) and not is_below(real, step.project)
        to = f"is a link that leads out of the project, to {real}; it " if leads_out else ""
        end = f" ({who})" if who else ""
        return f"'{near(path, step.project)}' {to}is read but not declared{end}"
    readers = dict.fromkeys(by.values())
    is_one = len(readers) == 1
    names = [
        f"'{near(path, step.project)}'" + (f" ({who})" if who and not is_one else "")
        for path, who in list(by.items())[:_SHOWN]
    ]
    names += [f"{len(by) - _SHOWN} more"] if len(by) > _SHOWN else []
    who = next(iter(readers)) if is_one else ""
    return f"{listed(names, 'and')} are read but not declared" + (f" ({who})" if who else "")


def _also_named(
    readers: Mapping[str, str], known: Mapping[str, str], step: RefusedStep
) -> Iterator[str]:
    """Yield further files of the project that the code which read one names, and nobody declares."""
    sources = {who.rpartition(":")[0] for who in readers.values() if who}
    seen = set(known)
    for source in sorted(sources):
        file = Path(step.project, source)
        for text in _texts_in(file):
            for folder in (file.parent, Path(step.project), Path(step.recipe).parent):
                path = os.path.normpath(folder / text)
                if path in seen or not is_below(path, step.project) or path.endswith(_CODE):
                    continue
                if near(path, step.project) in step.declared or is_below(path, step.store):
                    continue
                if os.path.isfile(path):
                    seen.add(path)
                    yield path


def _texts_in(source: Path) -> list[str]:
    """Return the texts in a file's code that could be paths."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    texts = [
        each.value
        for each in ast.walk(tree)
        if isinstance(each, ast.Constant) and isinstance(each.value, str)
    ]
    return sorted(
        text for text in texts if text.strip("./") and "\0" not in text and len(text) < _PATH_MAX
    )


def _with_folders(paths: Sequence[str], step: RefusedStep) -> list[str]:
    """Return what to declare, with the folder in the place of its files where it holds data alone and more."""
    named = [os.path.dirname(path) for path in paths]
    found: dict[str, None] = {}
    for path, folder in zip(paths, named, strict=True):
        count = _data_files(folder, step)
        is_folder = count > named.count(folder) or (count > 0 and named.count(folder) >= _SHOWN)
        found[f"{_typed(folder, step)}/" if is_folder else _typed(path, step)] = None
    return list(found)


def _data_files(folder: str, step: RefusedStep) -> int:
    """Count the files of a folder below the project; 0 where there is code among them."""
    if not is_below(folder, step.project):
        return 0
    try:
        with os.scandir(folder) as entries:
            names = [each.name for each in entries if not each.name.startswith(".")]
    except OSError:
        return 0
    return (
        0 if any(name.endswith(_CODE) or name == "__pycache__" for name in names) else len(names)
    )


def near(path: str, project: str) -> str:
    """Return a path relative to the project where it is inside of it, else as it is."""
    return os.path.relpath(path, project) if is_below(path, project) else path


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is inside of a folder."""
    return path.startswith(f"{folder}/")


def _typed(path: str, step: RefusedStep) -> str:
    """Return the path as a recipe has it; for a file of a Hugging Face cache, its whole model."""
    model = _HUB_MODEL.match(path)
    path = f"{model[0]}/**" if model else path
    if is_below(path, step.project):
        return os.path.relpath(path, os.path.dirname(step.recipe))
    return f"~{path[len(step.home) :]}" if is_below(path, step.home) else path
