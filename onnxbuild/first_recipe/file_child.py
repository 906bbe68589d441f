"""Fenced process of `init` for a model's file: run it, where the file does not say all."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnxbuild.catalog import MODEL_SOURCES
from onnxbuild.core.errors import StepError
from onnxbuild.core.params import from_json
from onnxbuild.core.source_error import SourceError


def look(job: Mapping[str, Any]) -> dict[str, Any] | None:
    """Ask a source's frontend what running its file says.

    Args:
        job: `form`: its key in `model`; `path`: absolute; `recipe`: as far as it is known.

    Returns: `recipe`, `comments` and `holes` of the draft; None where there is nothing to say.

    Raises:
        StepError: The file can't be run.
    """
    form, path, recipe = str(job["form"]), Path(job["path"]), job["recipe"]
    source = MODEL_SOURCES[form]
    own = {key: value for key, value in recipe["model"].items() if key != form}
    try:
        options: object = from_json(source.options, own, "model")
        draft = source.tried(path, source.look(path), options, recipe, Path.cwd())
    except SourceError as error:
        raise StepError(error.what, fix=error.fix) from error
    if draft is None:
        return None
    return {
        "recipe": dict(draft.recipe),
        "comments": dict(draft.comments),
        "holes": dict(draft.holes),
    }
