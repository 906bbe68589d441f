"""Write what a model's file can't say and a recipe must, where its reader knows what would mend it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxbuild.catalog import MODEL_SOURCES
from onnxbuild.core.params import from_json
from onnxbuild.core.source_error import SourceError
from onnxbuild.expansion.model_source import SourceFacts
from onnxbuild.first_recipe.recipe_text import HOLE

_INPUTS = "dummy_inputs"
_MENDS_MAX = 64


def mended(
    form: str, path: Path, recipe: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """A recipe with what mends it, and dotted key -> why it is there.

    Args:
        form: Key of `model` that names the file.
        path: The file, absolute.
        recipe: As it would be written.
    """
    why: dict[str, str] = {}
    for _ in range(_MENDS_MAX):
        refused = refusal(form, path, recipe)
        if refused is None or not refused.mend:
            break
        recipe = over(recipe, refused.mend)
        for key, value in refused.mend.items():
            if key == _INPUTS:
                why |= {f"{key}.{name}": f"{HOLE}: {refused.fix}" for name in value}
            else:
                why |= {
                    ".".join((key, *value)) if isinstance(value, Mapping) else key: refused.what
                }
    return recipe, why


def files_of(form: str, path: Path, recipe: Mapping[str, Any]) -> tuple[Path, ...]:
    """Files of a model: its own and those of its weights.

    Args:
        form: Key of `model` that names the file.
        path: The file, absolute.
        recipe: As it would be written.
    """
    try:
        return (path, *_read(form, path, recipe).files)
    except (SourceError, OSError, ValueError):
        return (path,)


def refusal(form: str, path: Path, recipe: Mapping[str, Any]) -> SourceError | None:
    """Return what is wrong with a recipe as far as its model's file says; None without a fault.

    Args:
        form: Key of `model` that names the file.
        path: The file, absolute.
        recipe: As it would be written.
    """
    try:
        _read(form, path, recipe)
    except SourceError as error:
        return error
    except (OSError, ValueError):  # reported where the recipe is read
        return None
    return None


def _read(form: str, path: Path, recipe: Mapping[str, Any]) -> SourceFacts:
    source = MODEL_SOURCES[form]
    own = {key: value for key, value in recipe["model"].items() if key != form}
    options: object = from_json(source.options, own, "model")
    return source.read(path, source.look(path), options, recipe)


def over(below: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """One mapping over another, mappings in them merged."""
    merged = dict(below)
    for key, each in value.items():
        under = merged.get(key)
        both = isinstance(each, Mapping) and isinstance(under, Mapping)
        merged[key] = over(under, each) if both and isinstance(under, Mapping) else each
    return merged
