"""First difference of two artifacts: the first file that differs, and the first difference in it."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.step import MANIFEST_FILE, SUMS_FILE
from onnxbuild.onnxkit.differences.values import (
    array_difference,
    attribute_changes,
    cut,
    in_words,
    shown,
)
from onnxbuild.onnxkit.model.model_files import is_outside, load_model, weight_array

if TYPE_CHECKING:
    import onnx


_Found = tuple[str, str]  # (`node`, `initializer` or another noun, what differs)
_FIRST_NAMED = ("op_type", "domain", "name", "input", "output")


def model_difference(one: Path, other: Path) -> tuple[str, str]:
    """The first difference of two models, and how many nodes and initializers differ.

    First in the graph's order: a node comes after the initializers that it is the first to read.

    Returns: Two sentences; empty if the models mean the same.

    Raises:
        StepError: One of them can't be read.
    """
    found = list(_Pair(one, other).differences())
    if not found:
        return "", ""
    nouns = [noun for noun, _ in found]
    counts = [
        f"{nouns.count(noun)} {noun}{'s' if nouns.count(noun) != 1 else ''}"
        for noun in ("node", "initializer")
        if noun in nouns
    ]
    return found[0][1], f"{' and '.join(counts)} in all" if counts and len(found) > 1 else ""


class _Pair:
    """Two models; their tensors are read one at a time."""

    def __init__(self, one: Path, other: Path) -> None:
        self._one, self._other = one, other

    def differences(self) -> Iterator[_Found]:
        one, other = (load_model(path, weights="mapped") for path in (self._one, self._other))
        yield from self._graphs(one.graph, other.graph, "")
        functions = {f"{f.domain}:{f.name}": f for f in other.functions}
        for each in one.functions:
            match = functions.pop(f"{each.domain}:{each.name}", None)
            if match is None:
                yield "function", f"function '{each.name}' is gone"
            elif _bytes(each) != _bytes(match):
                yield from self._nodes(each.node, match.node, f"function '{each.name}': ")
                rest = _fields(each, match, ("node",), f"function '{each.name}': ")
                yield from (("function", said) for said in rest)
        yield from (("function", f"function '{each.name}' is new") for each in functions.values())
        yield from (("model", said) for said in _fields(one, other, ("graph", "functions"), ""))

    def _graphs(self, one: Any, other: Any, inside: str) -> Iterator[_Found]:
        ones = {tensor.name: tensor for tensor in one.initializer}
        others = {tensor.name: tensor for tensor in other.initializer}
        done: set[str] = set()

        def initializers(names: Iterable[str]) -> Iterator[_Found]:
            for name in names:
                if name in done or name not in ones:
                    continue
                done.add(name)
                said = self._tensors(ones[name], others[name]) if name in others else "it is gone"
                if said:
                    yield "initializer", f"{inside}initializer '{name}': {said}"

        yield from self._nodes(one.node, other.node, inside, initializers)
        yield from initializers(ones)
        new = [name for name in others if name not in ones]
        yield from (("initializer", f"{inside}initializer '{name}' is new") for name in new)
        for field in ("input", "output", "value_info"):
            yield from _values(getattr(one, field), getattr(other, field), f"{inside}{field}")
        done_with = ("node", "initializer", "input", "output", "value_info")
        yield from (("graph", said) for said in _fields(one, other, done_with, f"{inside}graph "))

    def _nodes(
        self,
        ones: Any,
        others: Any,
        inside: str,
        before: Callable[[Iterable[str]], Iterator[_Found]] = lambda names: iter(()),  # noqa: ARG005
    ) -> Iterator[_Found]:
        for number, (one, other) in enumerate(zip(ones, others, strict=False)):
            yield from before(one.input)
            if _bytes(one) != _bytes(other):
                yield from self._node(one, other, f"{inside}node {number}, ")
        for number in range(len(others), len(ones)):
            yield "node", f"{inside}node {number}, {_label(ones[number])}, is gone"
        for number in range(len(ones), len(others)):
            yield "node", f"{inside}node {number}, {_label(others[number])}, is new"

    def _node(self, one: Any, other: Any, inside: str) -> Iterator[_Found]:
        """The first thing about a node that differs, then what differs in its graphs."""
        if _label(one) != _label(other):
            yield "node", f"{inside}{_label(one)} -> {_label(other)}"
            return
        inside = f"{inside}{_label(one)}: "
        named = list(_fields(one, other, ("attribute",), inside))
        others = {attribute.name: attribute for attribute in other.attribute}
        below: list[_Found] = []
        for attribute in one.attribute:
            match = others.pop(attribute.name, None)
            if match is None:
                named.append(f"{inside}attribute '{attribute.name}' is gone")
            elif _bytes(attribute) != _bytes(match):
                label = f"{inside}attribute '{attribute.name}': "
                if attribute.HasField("g") and match.HasField("g"):
                    below += self._graphs(attribute.g, match.g, label)
                elif attribute.HasField("t") and match.HasField("t"):
                    said = self._tensors(attribute.t, match.t)
                    if said or not is_outside(attribute.t):
                        named.append(f"{label}{said or 'spelling'}")
                else:
                    named.append(f"{label}{_attribute(attribute, match)}")
        named += [f"{inside}attribute '{name}' is new" for name in others]
        if named:
            yield "node", named[0]
        yield from below

    def _tensors(self, one: onnx.TensorProto, other: onnx.TensorProto) -> str:
        if one.data_type != other.data_type or list(one.dims) != list(other.dims):
            return f"{_tensor_type(one)} -> {_tensor_type(other)}"
        return array_difference(weight_array(one), weight_array(other))


def _values(ones: Any, others: Any, noun: str) -> Iterator[_Found]:
    """Inputs, outputs or value infos, by name."""
    import onnx

    by_name = {value.name: value for value in others}
    for one in ones:
        other = by_name.pop(one.name, None)
        if other is None:
            yield noun, f"{noun} '{one.name}' is gone"
        elif _bytes(one) != _bytes(other):
            types = [onnx.helper.printable_type(value.type) for value in (one, other)]
            yield noun, f"{noun} '{one.name}': " + " -> ".join(types)
    yield from ((noun, f"{noun} '{name}' is new") for name in by_name)
    if not by_name and [v.name for v in ones] != [v.name for v in others]:
        yield noun, f"the order of {noun}s"


def _fields(one: Any, other: Any, done: Iterable[str], inside: str) -> Iterator[str]:
    """Yield `name: old -> new` for each field that differs between two messages."""
    names = [field.name for field in one.DESCRIPTOR.fields if field.name not in done]
    for name in sorted(names, key=lambda name: name not in _FIRST_NAMED):
        left, right = getattr(one, name), getattr(other, name)
        if left != right:
            yield f"{inside}{name}: {_field(left)} -> {_field(right)}"


def _field(value: Any) -> str:
    if isinstance(value, int | str | bytes | float):
        return shown(value)
    return cut(" ".join(repr(list(value)).split()))


def _label(node: onnx.NodeProto) -> str:
    return f"{node.op_type} '{node.name}'"


def _attribute(one: onnx.AttributeProto, other: onnx.AttributeProto) -> str:
    """Return the difference of an attribute that two nodes have: `old -> new`, or the elements that differ."""
    found = next(attribute_changes([one], [other], ""), None)
    if found is None:
        return "spelling"
    if found.values is None:
        return f"{found.old} -> {found.new}"
    return f"{found.old}: {in_words(found.values)}"


def _tensor_type(tensor: onnx.TensorProto) -> str:
    import onnx

    return f"{onnx.TensorProto.DataType.Name(tensor.data_type)} {list(tensor.dims)}"


def _bytes(message: Any) -> bytes:
    content: bytes = message.SerializeToString(deterministic=True)
    return content


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
        one: The one file.
        other: The other.
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
    except (StepError, ValueError, EOFError, zipfile.BadZipFile) as error:
        return (
            f"it can't be read as what its name says ({error}); {_byte_difference(one, other)}",
            "",
        )
    return _line_difference(one, other) or _byte_difference(one, other), ""


def _arrays(one: Path, other: Path) -> tuple[str, str]:
    import numpy as np

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
