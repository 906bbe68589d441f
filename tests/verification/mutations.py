"""One thing in a release that is not as it was: a JSON value, a path, bytes, a node of a model."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
from hypothesis import strategies as st

from onnxbuild.release_format.forms import json_bytes

ODD_NUMBERS = (0, -1, 1, 2**31, 2**63, 10**400, -0.0, 0.5, 1e308, float("nan"), float("inf"))
ODD_TEXTS = (
    "", ".", "..", "/", "../../victim", "{victim}", "/dev/shm/onnxbuild-fuzz", "a/b", "a\\b",
    "\x00", "\x1b[2J", "\ud800", "x" * 5000, "model.onnx", "cpu", "CUDAExecutionProvider", "CON",
    "session.collect_node_memory_stats_to_file", "ep.context_file_path", "session.profiling",
)  # fmt: skip
ODD_NAMES = (
    "new", "golden/new.npz", "recipe/models/tiny.py", "variants/fp32/model.ort", ".git/config",
    "variants/fp32/model.onnx.data", "a\nb", "\x1b[2J", "variants/fp32/cpp/../x", "golden/points.json",
)  # fmt: skip

texts = st.one_of(st.sampled_from(ODD_TEXTS), st.text(max_size=20))
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.sampled_from(ODD_NUMBERS), st.integers(), texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=5,
)
indices = st.integers(0, 10**6)


@dataclass(frozen=True)
class Mutation:
    """What is done to a release's folder.

    Attributes:
        reported: In words, for whoever reads a failing example.
        do: Given the folder and a file outside of it that must stay as it is.
    """

    reported: str
    do: Callable[[Path, Path], None]


def names_of(folder: Path) -> list[str]:
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def places_in(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every value's place, the root's included."""
    found = [place]
    if isinstance(value, (dict, list)):
        pairs = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in list(pairs):
            found += places_in(each, (*place, key))
    return found


def with_victim(value: Any, victim: Path) -> Any:
    if isinstance(value, dict):
        return {with_victim(k, victim): with_victim(v, victim) for k, v in value.items()}
    if isinstance(value, list):
        return [with_victim(each, victim) for each in value]
    return str(victim) if value == "{victim}" else value


@st.composite
def json_values(draw: st.DrawFn, names: Sequence[str] = ()) -> Mutation:
    """A value of a JSON file replaced, gone, or next to one that no release has.

    Args:
        draw: Hypothesis'.
        names: The files; none named: all that there are.
    """
    which, where, value = draw(indices), draw(indices), draw(values)
    how = draw(st.sampled_from(["replace", "remove", "add", "rename"]))
    key = draw(texts)

    def do(folder: Path, victim: Path) -> None:
        files = names or [name for name in names_of(folder) if name.endswith(".json")]
        path = folder / files[which % len(files)]
        root = json.loads(path.read_text())
        places = places_in(root)
        place = places[where % len(places)]
        odd = with_victim(value, victim)
        if not place:
            root = odd
        else:
            inner = root
            for each in place[:-1]:
                inner = inner[each]
            last = place[-1]
            if how == "remove":
                del inner[last]
            elif how == "add" and isinstance(inner, dict):
                inner[with_victim(key, victim)] = odd
            elif how == "rename" and isinstance(inner, dict):
                inner[with_victim(key, victim)] = inner.pop(last)
            else:
                inner[last] = odd
        path.write_bytes(spelled(root))

    return Mutation(f"{how} JSON {which}/{where} by {value!a} ({key!a})", do)


def spelled(value: Any) -> bytes:
    """As a release spells it, unless that can't be."""
    try:
        return json_bytes(value)
    except ValueError:
        return json.dumps(value).encode()


@st.composite
def paths(draw: st.DrawFn) -> Mutation:
    """A file that is moved, linked, doubled, emptied, or a folder."""
    which, name = draw(indices), draw(st.sampled_from(ODD_NAMES))
    how = draw(
        st.sampled_from(["move", "copy", "link out", "link in", "folder", "remove", "empty"])
    )

    def do(folder: Path, victim: Path) -> None:
        files = names_of(folder)
        path, new = folder / files[which % len(files)], folder / name
        if how in ("move", "copy"):
            content = path.read_bytes()
            if how == "move":
                path.unlink()
            new.parent.mkdir(parents=True, exist_ok=True)
            new.write_bytes(content)
            return
        path.unlink()
        if how == "link out":
            path.symlink_to(victim)
        elif how == "link in":
            path.symlink_to(folder / files[(which + 1) % len(files)])
        elif how == "folder":
            path.mkdir()
        elif how == "empty":
            path.write_bytes(b"")

    return Mutation(f"{how} file {which} ({name!a})", do)


@st.composite
def contents(draw: st.DrawFn) -> Mutation:
    """Bytes of any file: some are others, more or fewer."""
    which, at = draw(indices), draw(indices)
    how = draw(st.sampled_from(["flip", "cut", "insert", "repeat"]))
    piece = draw(st.binary(min_size=1, max_size=64))

    def do(folder: Path, victim: Path) -> None:
        files = names_of(folder)
        path = folder / files[which % len(files)]
        path.write_bytes(mutated_bytes(path.read_bytes(), how, at, piece))

    return Mutation(f"{how} bytes of file {which} at {at}: {piece!r}", do)


def mutated_bytes(content: bytes, how: str, at: int, piece: bytes) -> bytes:
    at %= len(content) + 1
    if how == "cut":
        return content[:at]
    if how == "repeat":
        return content[:at] + content
    if how == "insert":
        return content[:at] + piece + content[at:]
    return (
        content[:at] + bytes(b ^ (piece[0] or 1) for b in content[at : at + 1]) + content[at + 1 :]
    )


OPERATORS = ("EPContext", "Loop", "If", "Relu", "Reshape", "Expand", "", "X", "Tile", "Range")


@st.composite
def models(draw: st.DrawFn) -> Mutation:
    """The ONNX model of a variant: an operator, a name, a size, weights elsewhere; or its bytes."""
    how = draw(
        st.sampled_from(
            ["operator", "domain", "input", "size", "weights", "opset", "bytes", "shape"]
        )
    )
    which, at, number = (
        draw(indices),
        draw(indices),
        draw(st.sampled_from([0, -1, 7, 2**31, 2**62])),
    )
    text, piece = draw(texts), draw(st.binary(min_size=1, max_size=16))

    def do(folder: Path, victim: Path) -> None:
        path = folder / "variants/fp32/model.onnx"
        if how == "bytes":
            path.write_bytes(mutated_bytes(path.read_bytes(), "flip", at, piece))
            return
        model = onnx.load(path)
        graph = model.graph
        node = graph.node[which % len(graph.node)]
        weight = graph.initializer[which % len(graph.initializer)]
        word = with_victim(text, victim).encode("utf-8", "replace").decode()
        if how == "operator":
            node.op_type = OPERATORS[at % len(OPERATORS)]
        elif how == "domain":
            node.domain = word
        elif how == "input":
            node.input[at % len(node.input)] = word
        elif how == "size":
            weight.dims[at % len(weight.dims)] = number
        elif how == "shape":
            graph.input[0].type.tensor_type.shape.dim[at % 2].dim_value = number
        elif how == "opset":
            model.opset_import[0].version = number
        else:
            weight.ClearField("raw_data")
            weight.data_location = onnx.TensorProto.EXTERNAL
            weight.external_data.add(key="location", value=word)
            weight.external_data.add(key="offset", value=str(number))
        path.write_bytes(model.SerializeToString())

    return Mutation(f"{how} of the model {which}/{at}: {number} {text!a} {piece!r}", do)


@st.composite
def archives(draw: st.DrawFn) -> Mutation:
    """A golden file's archive: a member's header, its form, its bytes."""
    which, at = draw(indices), draw(indices)
    how = draw(st.sampled_from(["flip", "cut", "insert"]))
    piece = draw(st.binary(min_size=1, max_size=8))

    def do(folder: Path, victim: Path) -> None:
        files = sorted((folder / "golden").glob("*.npz"))
        path = files[which % len(files)]
        path.write_bytes(mutated_bytes(path.read_bytes(), how, at, piece))

    return Mutation(f"{how} golden file {which} at {at}: {piece!r}", do)
