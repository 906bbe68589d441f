"""Outline of an estimator's file: its inputs, read without the package that wrote it."""

import json
import re
import zipfile
from pathlib import Path
from typing import Any

from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.sources.outline import SourceOutline, SourceValue

PICKLES = (".joblib", ".pkl", ".pickle")

SKOPS = ".skops"

FEATURES = "features"
"""The input of a file that says how wide its rows are."""

_SCHEMA = "schema.json"

_MOST_SCHEMA_BYTES = 1 << 28

_END_OF_TREES = "end of trees"

_NO_XGBOOST = "it is no whole model of XGBoost, as JSON or UBJSON"
_PARAMETERS, _LAST_KEY, _TAIL_BYTES = b"learner_model_param", b"version", 64
"""UBJSON of XGBoost: keys are sorted, so that `version` ends a whole file."""
_UBJSON_FEATURES = re.compile(
    _PARAMETERS + rb"\{.{0,400}?num_featureS(?:[iU].|I.{2}|l.{4}|L.{8})(\d+)", re.DOTALL
)
"""The number as a text (S), after its length of 1 to 8 bytes (ubjson.org, draft 12)."""
_FEATURES = re.compile(r"^max_feature_idx=(\d+)$", re.MULTILINE)

_CHECK = "check that the file is complete; git-lfs pointers are a frequent cause"


def _unreadable(path: Path, why: object) -> SourceError:
    return SourceError(f"{path.name} can't be read: {why}", _CHECK)


def _rows(features: int) -> SourceOutline:
    """The outline of an estimator: one input of float32, as wide as its rows; none where that is not known, 0."""
    rows = SourceValue(FEATURES, "float32", ("", features))
    return SourceOutline(inputs=(rows,) if features else (), gives_way=True)


def outline_of_sklearn(path: Path) -> SourceOutline:
    """Look at a .skops file or a pickle; a pickle says nothing, since reading it would run it.

    Raises:
        SourceError: It is neither.
        OSError: It can't be read.
    """
    if path.suffix in PICKLES:
        with path.open("rb") as file:
            if not file.read(1):
                raise _unreadable(path, "it is empty")
        return _rows(0)
    if path.suffix != SKOPS:
        raise _unreadable(
            path, f"its name ends in '{path.suffix}'; expected {SKOPS} or {', '.join(PICKLES)}"
        )
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(_SCHEMA).file_size > _MOST_SCHEMA_BYTES:
                raise _unreadable(path, f"its {_SCHEMA} is too large")
            schema = json.loads(archive.read(_SCHEMA))
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError) as error:
        raise _unreadable(path, f"it is no whole .skops file: {error}") from error
    return _rows(_features_of_node(schema))


def _features_of_node(node: Any) -> int:
    """`n_features_in_` of an estimator in a .skops schema; of a pipeline, that of its first step."""
    try:
        state = node["content"]["content"]
        if "steps" in state:
            _, first = state["steps"]["content"][0]["content"]
            return _features_of_node(first)
        return int(json.loads(state["n_features_in_"]["content"]))
    except (KeyError, IndexError, TypeError, ValueError, RecursionError):
        return 0


def outline_of_xgboost(path: Path) -> SourceOutline:
    """Look at what `save_model` wrote: JSON or UBJSON.

    Raises:
        SourceError: It is neither.
        OSError: It can't be read.
    """
    content = path.read_bytes()
    try:
        if path.suffix == ".json":
            return _rows(int(json.loads(content)["learner"]["learner_model_param"]["num_feature"]))
        found = _UBJSON_FEATURES.search(content, max(content.rfind(_PARAMETERS), 0))
        if found is not None and _LAST_KEY in content[-_TAIL_BYTES:]:
            return _rows(int(found[1]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _unreadable(path, _NO_XGBOOST) from error
    raise _unreadable(path, _NO_XGBOOST)


def outline_of_lightgbm(path: Path) -> SourceOutline:
    """Look at what `Booster.save_model` wrote.

    Raises:
        SourceError: It is no such text.
        OSError: It can't be read.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    found = _FEATURES.search(text)
    if not text.startswith("tree\n") or found is None:
        raise _unreadable(path, "it is no text that LightGBM's `save_model` wrote")
    if _END_OF_TREES not in text:
        raise _unreadable(path, f"it breaks off: it has no line '{_END_OF_TREES}'")
    return _rows(int(found[1]) + 1)
