"""A model that is a file or a folder, `model: {onnx: weights/model.onnx}`, and what it says of a recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnxbuild.core.draft import Draft
from onnxbuild.core.source_error import SourceError, about
from onnxbuild.onnxkit.sources.outline import SourceOutline
from onnxbuild.onnxkit.sources.parts import recipe_parts
from onnxbuild.onnxkit.sources.renaming import renamed_outline


def facts_of_renamed(
    path: Path, outline: SourceOutline, rename: Mapping[str, str], written: Mapping[str, Any]
) -> SourceFacts:
    """Return the facts of a model that is ONNX, or becomes it: `rename` is one of them.

    Args:
        path: As the recipe names it, absolute.
        outline: Under the model's own names; files are relative to the model's folder, or absolute.
        rename: The model's names of inputs and outputs -> the recipe's.
        written: The recipe as it is written, rendered; values may be anything.

    Raises:
        SourceError: No recipe can declare the model, or this one names what it has not.
    """
    with about(path):
        outline = renamed_outline(outline, rename, written)
    return source_facts(path, outline, written)


Tried = Callable[[Path, Any, Any, Mapping[str, Any], Path], Draft | None]
"""(PATH, what was looked at, the options, what is written in the recipe, an empty folder to write to) -> a draft."""

Whole = Callable[[Path, str, str], Draft | None]
"""(PATH, PATH as the recipe names it, name of the file for the draft's code) -> the recipe of several models, or None."""

ENVIRONMENT = "environment"
"""Key of `model`: where the model's framework is installed."""


@dataclass(frozen=True, slots=True)
class SourceFacts:
    """Facts that a model's file gives.

    Attributes:
        files: All that belongs to it, absolute, in one folder; the file itself first.
        read: Those whose content decided what is said here.
        recipe: Keys of a recipe that need not be written, as JSON values; what is written comes first.
        facts: JSON values that the frontend's steps take; they are in `Entrypoint.args`.
        notes: Dotted key of a recipe -> what `init` writes next to it.
    """

    files: Sequence[Path]
    read: Sequence[Path]
    recipe: Mapping[str, Any]
    facts: Mapping[str, Any]
    notes: Mapping[str, str] = field(default_factory=dict)


def source_facts(path: Path, outline: SourceOutline, written: Mapping[str, Any]) -> SourceFacts:
    """Return the facts of a model by its outline.

    Args:
        path: As the recipe names it, absolute.
        outline: Under the recipe's names.
        written: The recipe as it is written, rendered; values may be anything.

    Raises:
        SourceError: No recipe can declare the model, or this one asks for what it does not take.
    """
    with about(path):
        recipe = recipe_parts(outline, written)
    files = outline.files or (path,)
    return SourceFacts(files, outline.read or files[:1], recipe, outline.facts, outline.notes)


def no_trial(
    _path: Path, _looked: object, _options: object, _written: Mapping[str, Any], _folder: Path
) -> Draft | None:
    """Return None: the hook `tried` of a source whose files say all that can be known."""
    return None


def _no_whole(_path: Path, _written: str, _module: str) -> Draft | None:
    """Return None: the hook `whole` of a source whose files and folders hold one model."""
    return None


def _by_outline(
    path: Path, outline: SourceOutline, _options: object, written: Mapping[str, Any]
) -> SourceFacts:
    """The hook `read` of a source whose `look` gives the outline, and that has no options."""
    return source_facts(path, outline, written)


def _one_model(
    _path: Path, _looked: object, _options: object, _written: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return nothing: the hook `components` of a source whose file is one model."""
    return {}


def _never(_path: Path) -> bool:
    """Return False: the hook `recognizes` of a kind that files' names tell."""
    return False


@dataclass(frozen=True, slots=True)
class NoOptions:
    """Keys next to NAME in `model`: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """A frontend's form of `model`: `{NAME: PATH}`, NAME that of the frontend.

    Attributes:
        help: One line on PATH.
        options: Frozen dataclass of the keys next to NAME, each with its help.
        look: PATH, absolute -> what `read` takes of it, the same for all recipes of that file: its SourceOutline, or what that is made of.
        read: (PATH, what was looked at, the options, what is written in the recipe) -> what the file says; left out: what
            the outline does.
        frontend: The frontend that takes it; empty for the one that declares it.
        is_folder: PATH is a folder.
        suffixes: Endings of its files' names, as `.onnx`, by which `init` knows them.
        shared_suffixes: Endings that files of other kinds have, too: those that `look` can read are of this one.
        tried: What running the file says of a first recipe; `init` calls it in a fenced process.
        components: (the model, what was looked at, the options, the recipe as it is written) -> keys of a recipe,
            `components` among them, that it stands for where it holds several models; nothing for one.
        whole: What a folder of several models says of a recipe with `components`, without running anything; `init` asks.
        recognizes: Says of a file or a folder whether it is of this kind, where its name does not.
        is_callable: PATH is FILE.py:CALLABLE or package.module:CALLABLE: `{NAME: X}` is `frontend: NAME` and
            `{entrypoint: X}`. Nothing is looked at or read.
        draft: Of one with `is_callable`: (file, name of the callable) -> what its text says of a first recipe,
            without running it; None if it is for another frontend.
        words: Names that other tools have for the key, separated by blanks.

    `look` and `read` import no framework, since recipes are read before anything runs, and raise SourceError and OSError.
    """

    help: str
    look: Callable[[Path], Any] = lambda _path: None
    read: Callable[[Path, Any, Any, Mapping[str, Any]], SourceFacts] = _by_outline
    options: type = NoOptions
    frontend: str = ""
    is_folder: bool = False
    suffixes: tuple[str, ...] = ()
    shared_suffixes: tuple[str, ...] = ()
    recognizes: Callable[[Path], bool] = _never
    tried: Tried = no_trial
    components: Callable[[Path, Any, Any, Mapping[str, Any]], Mapping[str, Any]] = _one_model
    whole: Whole = _no_whole
    is_callable: bool = False
    draft: Callable[[Path, str], Draft | None] = lambda _file, _name: None
    words: str = ""

    def takes(self, path: Path) -> bool:
        """Return whether a file or a folder seems to be of this kind."""
        suffix = path.suffix.lower() if path.is_file() else ""
        if suffix and suffix in self.shared_suffixes:
            try:
                self.look(path)
            except (SourceError, OSError):
                return False
            return True
        return bool(suffix and suffix in self.suffixes) or self.recognizes(path)
