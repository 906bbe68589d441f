"""Draft of a recipe for an estimator, which is loaded: the width of its rows, or that it takes texts."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from onnxbuild.core.draft import Draft
from onnxbuild.core.recipe import INPUT_NAME
from onnxbuild.onnxkit.data.completed_axes import BATCH
from onnxbuild.onnxkit.estimators.declared import FEATURES
from onnxbuild.onnxkit.estimators.files import load_file

_INPUTS = "dummy_inputs"
_TEXT = {"text": {"dtype": "string", "shape": [BATCH]}}
_COLUMN = {"dtype": "float32", "shape": [BATCH, 1]}


def draft_of_estimator_file(path: Path, frontend: str, args: dict[str, object]) -> Draft:
    """The inputs of the estimator in a file.

    Args:
        path: The file; a pickle, which is a program, is run.
        frontend: Name of the frontend that reads the file.
        args: Arguments that the recipe gives for it.

    Raises:
        StepError: It can't be loaded.
    """
    made = load_file(path, path.name, frontend, args, path.name)
    name = type(made).__name__
    first = _first(made)
    if hasattr(first, "build_analyzer"):  # CountVectorizer, TfidfVectorizer, HashingVectorizer
        return Draft({_INPUTS: _TEXT}, {_INPUTS: f"{type(first).__name__} takes texts"})
    columns = _selected_columns(first, made)
    if columns:
        inputs: dict[str, object] = dict.fromkeys(columns, _COLUMN)
        hole = "the type of each column: float32, int64, string or bool"
        return Draft({_INPUTS: inputs}, holes={_INPUTS: f"{hole}; {name} names them"})
    width = getattr(made, "n_features_in_", 0)
    inputs = {FEATURES: {"dtype": "float32", "shape": [BATCH, int(width) or 1]}}
    if width:
        return Draft({_INPUTS: inputs}, {_INPUTS: f"{name} was fitted with rows of {width}"})
    hole = f"what {name} takes: the number of its columns, or `text: {{dtype: string, shape: [batch]}}`"
    return Draft({_INPUTS: inputs}, holes={_INPUTS: hole})


def _first(estimator: Any) -> Any:
    """The first step of a Pipeline; the estimator itself, if it is none."""
    steps = getattr(estimator, "steps", None)
    return _first(steps[0][1]) if isinstance(steps, list) and steps else estimator


def _selected_columns(first: Any, whole: Any) -> tuple[str, ...]:
    """Columns of a table that are selected by their names, in order; none if places select them."""
    names = [str(each) for each in getattr(whole, "feature_names_in_", ())]
    chosen = [columns for _, _, columns in getattr(first, "transformers", ())]
    by_name = any(
        isinstance(columns, str)
        or (isinstance(columns, list) and any(isinstance(each, str) for each in columns))
        for columns in chosen
    )
    return tuple(names) if by_name and all(re.search(INPUT_NAME, each) for each in names) else ()
