"""Outline of an estimator's file: its inputs, read without the package that wrote it."""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections.abc import Callable
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

_FEATURES = re.compile(r"^max_feature_idx=(\d+)$", re.MULTILINE)

_CHECK = "check that the file is complete; git-lfs pointers are a frequent cause"

_SIZES = {b"i": "b", b"U": "B", b"I": "h", b"l": "i", b"L": "q", b"d": "f", b"D": "d"}
"""Markers of numbers -> their form, big-endian."""


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
        model = json.loads(content) if path.suffix == ".json" else ubjson(content)
        found = model["learner"]["learner_model_param"]["num_feature"]
        return _rows(int(found))
    except (ValueError, KeyError, TypeError, RecursionError, struct.error, IndexError) as error:
        raise _unreadable(path, "it is no whole model of XGBoost, as JSON or UBJSON") from error


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


def ubjson(content: bytes) -> Any:
    """Decode UBJSON as XGBoost writes it; elements of typed arrays are left out (ubjson.org, draft 12).

    Raises:
        ValueError: A marker is none, or the text is cut off.
        struct.error: It is cut off.
        IndexError: It is cut off.
    """
    return _Ubjson(content).value()


class _Ubjson:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def value(self) -> Any:
        return self._of(self._take(1))

    def _take(self, count: int) -> bytes:
        found = self._content[self._at : self._at + count]
        if count < 0 or len(found) < count:
            raise ValueError("it is cut off")
        self._at += count
        return found

    def _of(self, marker: bytes) -> Any:
        constants = {b"Z": None, b"T": True, b"F": False}
        readers: dict[bytes, Callable[[], Any]] = {
            b"S": self._text,
            b"C": lambda: self._take(1).decode(),
            b"{": self._object,
            b"[": self._array,
        }
        if marker in constants:
            return constants[marker]
        if marker in _SIZES:
            return self._number(marker)
        if marker in readers:
            return readers[marker]()
        raise ValueError(f"{marker!r} is no marker")

    def _number(self, marker: bytes) -> float:
        form = f">{_SIZES[marker]}"
        (found,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return float(found) if marker in b"dD" else int(found)

    def _text(self) -> str:
        return self._take(int(self.value())).decode()

    def _object(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while self._content[self._at : self._at + 1] != b"}":
            key = self._text()
            found[key] = self.value()
        self._take(1)
        return found

    def _array(self) -> list[Any]:
        if self._content[self._at : self._at + 1] == b"$":
            self._take(1)
            kind = self._take(1)
            if self._take(1) != b"#":
                raise ValueError("an array has a type and no length")
            self._take(int(self.value()) * struct.calcsize(f">{_SIZES[kind]}"))
            return []
        if self._content[self._at : self._at + 1] == b"#":
            self._take(1)
            return [self.value() for _ in range(int(self.value()))]
        found = []
        while self._content[self._at : self._at + 1] != b"]":
            found.append(self.value())
        self._take(1)
        return found
