"""SOURCE of `init`: a callable, or a model's file or folder, and which frontend it is for."""

import os
import re
import shlex
from dataclasses import dataclass, fields
from pathlib import Path

from onnxbuild.catalog import MODEL_SOURCES
from onnxbuild.core.errors import UsageError
from onnxbuild.document.faults import nearest
from onnxbuild.recipe.declared.definitions import likely_models, top_level_names
from onnxbuild.regular_files import read_user_file

_RECIPES = (".yaml", ".yml")
_SHOWN_MAX = 4

_WEIGHTS = (".safetensors", ".ckpt", ".bin")
_OTHER_FORMS = {
    ".npz": "it holds arrays: name the callable that builds the model of them, FILE.py:CALLABLE",
    ".npy": "it holds an array: name the callable that builds the model, FILE.py:CALLABLE",
    ".h5": "save it anew: `keras.models.load_model(FILE).save('model.keras')`",
    ".hdf5": "save it anew: `keras.models.load_model(FILE).save('model.keras')`",
    ".pb": "name the folder of the SavedModel that it is in",
    ".xml": "name the model that it was converted from",
    ".engine": "name the model that it was built from",
    ".plan": "name the model that it was built from",
    ".mlmodel": "name the model that it was converted from",
    ".mlpackage": "name the model that it was converted from",
}
"""Ending of a file of another tool -> what to do."""


@dataclass(frozen=True, slots=True)
class Callable:
    """`FILE.py:CALLABLE`."""

    file: Path
    name: str


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model's file or folder.

    Attributes:
        path: As it is named.
        forms: Keys of `model` that it may be named by, the likeliest first.
    """

    path: Path
    forms: tuple[str, ...]


def find_source(text: str) -> Callable | ModelFile:
    """Find the callable, or the model's file, that SOURCE names.

    Raises:
        UsageError: There is no such file, or it is nothing that a recipe's model can be.
    """
    file, colon, name = text.rpartition(":")
    if colon and file.endswith(".py"):
        return _callable(Path(file), name)
    path = Path(text)
    if not path.exists():
        raise _missing(path)
    if path.suffix == ".py":
        names = likely_models(read_user_file(path))
        shown = f"; it defines {', '.join(names[:_SHOWN_MAX])}" if names else ""
        raise UsageError(
            f"{text} names no callable; expected FILE.py:CALLABLE{shown}",
            fix=f"write `{text}:{next(iter(names), 'load')}`",
        )
    if path.suffix in _RECIPES:
        raise UsageError(
            f"{text} is a recipe, or could be one", fix=f"onnxbuild run {shlex.quote(text)}"
        )
    found = tuple(name for name, source in MODEL_SOURCES.items() if source.takes(path))
    if not found:
        raise _unknown(path)
    return ModelFile(path, found)


def takes_option(name: str, option: str) -> bool:
    """Return whether `model` may have this option next to the file's key."""
    return any(each.name == option for each in fields(MODEL_SOURCES[name].options))


def name_of(source: Callable | ModelFile) -> str:
    """A name for the recipe."""
    path = source.file if isinstance(source, Callable) else source.path
    return as_name(Path(os.path.abspath(path)).stem)  # noqa: PTH100 - keeps links


def as_name(text: str) -> str:
    """Letters, digits and what a recipe's name may hold besides."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:100] or "model"


def _callable(file: Path, name: str) -> Callable:
    if not file.is_file():
        raise _missing(file, f":{name}")
    if not name.isidentifier():
        raise UsageError(f"'{name}' is no name of a callable", fix=f"write `{file}:load`")
    names = top_level_names(read_user_file(file))
    if names is not None and name not in names:
        near = nearest(name, sorted(names))
        hint = f"; did you mean '{near}'?" if near else ""
        fix = f"write `{file}:{near}`" if near else f"define `{name}` in {file}"
        raise UsageError(f"{file} defines no '{name}'{hint}", fix=fix)
    return Callable(file, name)


def _missing(path: Path, tail: str = "") -> UsageError:
    folder = path.parent
    siblings = [each.name for each in folder.iterdir()] if folder.is_dir() else []
    near = nearest(path.name, siblings)
    hint = f"; did you mean '{near}'?" if near else ""
    fix = (
        f"write `{folder / near}{tail}`"
        if near
        else "write the path of a model, or FILE.py:CALLABLE"
    )
    return UsageError(f"there is no {path}{hint}", fix=fix)


def _by_content() -> list[str]:
    """Return the kinds of files that are known by their content, as recipes' help calls them."""
    return [
        source.help.partition(", relative")[0]
        for source in MODEL_SOURCES.values()
        if not (source.suffixes or source.is_folder or source.is_callable)
    ]


def _unknown(path: Path) -> UsageError:
    endings = [ending for source in MODEL_SOURCES.values() for ending in source.suffixes]
    expected = (
        f"expected FILE.py:CALLABLE or {', '.join(dict.fromkeys([*endings, *_by_content()]))}"
    )
    if path.suffix in _WEIGHTS:
        return UsageError(
            f"{path} holds weights alone, and no program",
            fix="write a callable that builds the module and loads them, and name it: "
            "`onnxbuild init FILE.py:CALLABLE`",
        )
    if path.suffix in _OTHER_FORMS:
        return UsageError(f"{path} is no file that onnxbuild reads", fix=_OTHER_FORMS[path.suffix])
    if not path.is_dir():
        return UsageError(
            f"{path} is no model that onnxbuild knows by its name; {expected}",
            fix="name the model's file; of a model in Python, a callable that returns it",
        )
    inside = sorted(each for each in path.iterdir() if each.suffix in endings)
    if inside:
        shown = ", ".join(each.name for each in inside[:_SHOWN_MAX])
        return UsageError(
            f"{path} is a folder; it has {shown}",
            fix=f"onnxbuild init {shlex.quote(str(inside[0]))}",
        )
    return UsageError(
        f"there is no model in {path}; {expected}",
        fix="name the model's file, or the folder that its config.json is in",
    )
