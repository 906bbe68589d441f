"""First difference of two artifacts: the first file that differs, and the first difference in it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnxbuild.core.errors import StepError, UsageError
from onnxbuild.core.step import MANIFEST_FILE, SUMS_FILE
from onnxbuild.onnxkit.differences.models import compare_models
from onnxbuild.onnxkit.differences.sentences import say
from onnxbuild.onnxkit.differences.values import array_difference, shown
from onnxbuild.onnxkit.frameworks import np
from onnxbuild.onnxkit.model.model_files import load_model


def model_difference(one: Path, other: Path) -> tuple[str, str]:
    """The most important difference of two models, and how many there are; see `say`.

    Models that mean the same differ in names, order or fields: the first of these.

    Returns: Two texts; the first is empty if the models are equal, the second if no more differs.

    Raises:
        StepError: One of them can't be read.
        UsageError: One has no graph.
    """
    said = say(compare_models(one, other))
    if said:
        return said[0].sentence, f"{len(said)} differences in all" if len(said) > 1 else ""
    return spelling_difference(one, other), ""


def spelling_difference(one: Path, other: Path) -> str:
    """The first field at which two models differ: `graph.node[3].name: 'a' -> 'b'`; empty if none does."""
    left, right = (load_model(path, weights="left") for path in (one, other))
    return _field_difference(left, right, "")


def _field_difference(one: Any, other: Any, path: str) -> str:
    """Compare two messages, field by field, in the order in which ONNX lists them."""
    for field in one.DESCRIPTOR.fields:
        old, new = getattr(one, field.name), getattr(other, field.name)
        if old == new:
            continue
        inner = f"{path}.{field.name}" if path else field.name
        if isinstance(old, str | bytes | int | float):
            return f"{inner}: {shown(old)} -> {shown(new)}"
        if hasattr(old, "DESCRIPTOR"):
            return _field_difference(old, new, inner)
        for n, (left, right) in enumerate(zip(old, new, strict=False)):
            if left != right:
                if hasattr(left, "DESCRIPTOR"):
                    return _field_difference(left, right, f"{inner}[{n}]")
                return f"{inner}[{n}]: {shown(left)} -> {shown(right)}"
        return f"{inner} has {len(old)} -> {len(new)} items"
    return ""


_CHUNK_BYTES = 1 << 20
_LONGEST_TEXT_BYTES = 1 << 22
_DATA = ".data"  # the weights of X.onnx are in X.onnx.data
_LAST = (SUMS_FILE, MANIFEST_FILE)  # they describe the others


@dataclass(frozen=True, slots=True)
class ArtifactDifference:
    """The first difference of two artifacts.

    Attributes:
        file: POSIX path in the artifact.
        what: The difference, `one -> other`.
        more: Count of what else differs in the file; empty if it is not counted.
    """

    file: str
    what: str
    more: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.what}" + (f" ({self.more})" if self.more else "")


def first_difference(one: Path, other: Path) -> ArtifactDifference | None:
    """The first difference of two artifacts' folders; None if they hold the same bytes.

    Models are compared node by node and tensor by tensor, external weights read one at a time,
    so that models beyond 2 GB work; arrays by element, JSON by value, all else by byte.
    """
    ones, others = _files(one), _files(other)
    for name in sorted(ones.keys() | others.keys(), key=_in_order):
        if name not in others:
            return ArtifactDifference(name, "this file is gone")
        if name not in ones:
            return ArtifactDifference(name, "this file is new")
        if _first_byte(ones[name], others[name]) is None:
            continue
        if name.endswith(f".onnx{_DATA}") and name.removesuffix(_DATA) in ones:
            name = name.removesuffix(_DATA)  # noqa: PLW2901 - the model names the tensor
        return _difference(name, ones[name], others[name])
    return None


def file_difference(name: str, one: Path, other: Path) -> ArtifactDifference | None:
    """Return the first difference of two files; None if they hold the same bytes.

    Args:
        name: POSIX path in the artifact.
    """
    return None if _first_byte(one, other) is None else _difference(name, one, other)


def _difference(name: str, one: Path, other: Path) -> ArtifactDifference:
    what, more = _inside(one, other)
    if not what:
        said = _byte_difference(one, other)
        what = f"the same values, written in another way: {said}" if said else "other weights"
    return ArtifactDifference(name, what, more)


def _in_order(name: str) -> tuple[bool, bool, str]:
    return name in _LAST, not name.endswith((".onnx", f".onnx{_DATA}")), name


def _files(folder: Path) -> dict[str, Path]:
    return {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file()}


def _inside(one: Path, other: Path) -> tuple[str, str]:
    """(first difference, how much else differs); empty where the contents mean the same."""
    try:
        if one.suffix == ".onnx":
            return model_difference(one, other)
        if one.suffix in {".npz", ".npy"}:
            return _arrays(one, other)
        if one.suffix == ".json":
            parsed = [json.loads(path.read_bytes()) for path in (one, other)]
            return json_difference(*parsed), ""
    except (StepError, UsageError, ValueError, EOFError, zipfile.BadZipFile) as error:
        return (
            f"it can't be read as what its name says ({error}); {_byte_difference(one, other)}",
            "",
        )
    return _line_difference(one, other) or _byte_difference(one, other), ""


def _arrays(one: Path, other: Path) -> tuple[str, str]:
    if one.suffix == ".npy":
        loaded = [np.load(path, mmap_mode="r", allow_pickle=False) for path in (one, other)]
        return array_difference(*loaded), ""
    first, count = "", 0
    with np.load(one, allow_pickle=False) as ones, np.load(other, allow_pickle=False) as others:
        names = list(dict.fromkeys([*ones, *others]))
        for name in names:
            if name not in others or name not in ones:
                said = f"it is {'new' if name in others else 'gone'}"
            else:
                said = array_difference(ones[name], others[name])
            if said:
                first = first or f"array '{name}': {said}"
                count += 1
    return first, f"{count} of {len(names)} arrays differ" if first else ""


def json_difference(one: object, other: object, path: str = "") -> str:
    """The first path at which two JSON values differ, with both; empty if they are equal."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys([*one, *other]):
            inner = f"{path}.{key}" if path else str(key)
            if key not in other:
                return f"{inner} is gone; it was {shown(one[key])}"
            if key not in one:
                return f"{inner} is new: {shown(other[key])}"
            if said := json_difference(one[key], other[key], inner):
                return said
        return ""
    if isinstance(one, list) and isinstance(other, list):
        for number, (left, right) in enumerate(zip(one, other, strict=False)):
            if said := json_difference(left, right, f"{path}[{number}]"):
                return said
        same = len(one) == len(other)
        return "" if same else f"{path or 'it'} has {len(one)} -> {len(other)} items"
    if one == other and type(one) is type(other):
        return ""
    return f"{path or 'it'}: {shown(one)} -> {shown(other)}"


def _line_difference(one: Path, other: Path) -> str:
    """The first line that differs; empty where the files are no text, or large."""
    if max(one.stat().st_size, other.stat().st_size) > _LONGEST_TEXT_BYTES:
        return ""
    try:
        ones, others = (path.read_bytes().decode().split("\n") for path in (one, other))
    except UnicodeDecodeError:
        return ""
    if any("\0" in line for line in (*ones, *others)):
        return ""
    for number, (left, right) in enumerate(zip(ones, others, strict=False), start=1):
        if left != right:
            return f"line {number}: {shown(left)} -> {shown(right)}"
    return f"it has {len(ones)} -> {len(others)} lines"


def _byte_difference(one: Path, other: Path) -> str:
    """The first byte that differs; empty where none does."""
    found = _first_byte(one, other)
    if found is None:
        return ""
    offset, left, right = found
    sizes = one.stat().st_size, other.stat().st_size
    bytes_there = f"{left.hex() or 'its end'} -> {right.hex() or 'its end'}"
    length = "" if sizes[0] == sizes[1] else f", {sizes[0]:,} -> {sizes[1]:,} bytes long"
    return f"byte {offset:,}: {bytes_there}{length}"


def _first_byte(one: Path, other: Path) -> tuple[int, bytes, bytes] | None:
    """(offset, one's byte, other's byte) of the first difference; a byte is empty at the end."""
    offset = 0
    with one.open("rb") as left, other.open("rb") as right:
        while True:
            ours, theirs = left.read(_CHUNK_BYTES), right.read(_CHUNK_BYTES)
            if ours != theirs:
                pairs = zip(ours, theirs, strict=False)
                shorter = min(len(ours), len(theirs))
                at = next((n for n, (a, b) in enumerate(pairs) if a != b), shorter)
                return offset + at, ours[at : at + 1], theirs[at : at + 1]
            if not ours:
                return None
            offset += len(ours)
