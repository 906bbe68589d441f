"""Guess what was meant by a text that names no callable."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.catalog import MODEL_SOURCES
from onnxbuild.document.node import Path as KeyPath
from onnxbuild.recipe.declared.definitions import likely_models
from onnxbuild.recipe.templates.extend import absolute
from onnxbuild.regular_files import read_user_file


def entrypoint_fix(text: str, form: str, key: KeyPath, folder: Path) -> str:
    """Return what to write in place of a text that is no `FILE.py:CALLABLE`.

    Args:
        text: As it is written.
        form: The forms that are taken there.
        key: Where it is in the recipe.
        folder: That paths are relative to.
    """
    if "::" in text:
        return f"write `{text.replace('::', ':')}`"
    home, _, name = text.rpartition(":")
    if home and name.isidentifier() and not home.endswith(".py"):
        is_there = absolute(Path(f"{home}.py"), folder).is_file()
        otherwise = "end the file's name with `.py`, or name a module with dots"
        return f"write `{home}.py:{name}`" if is_there else otherwise
    is_model = key[0] == "model"
    if text.endswith(".py"):
        return (
            f"write `{text}:{_likely(absolute(Path(text), folder)) if is_model else 'CALLABLE'}`"
        )
    source = _source_of(absolute(Path(text), folder)) if is_model else ""
    if not source:
        return f"write {form}"
    return f"write `model: {{{source}: {text}}}`" if len(key) == 1 else f"write `{source}: {text}`"


def _likely(file: Path) -> str:
    """Return the name of the callable that probably makes the model; `CALLABLE` where none is known."""
    try:
        names = likely_models(read_user_file(file))
    except (OSError, ValueError):
        names = []
    return next(iter(names), "CALLABLE")


def _source_of(path: Path) -> str:
    """Return the key of `model` that takes a file or a folder, by its name or by what is in it; empty for none."""
    for name, source in MODEL_SOURCES.items():
        try:
            if path.suffix.lower() in source.suffixes or source.takes(path):
                return name
        except (OSError, ValueError):
            continue
    return ""
