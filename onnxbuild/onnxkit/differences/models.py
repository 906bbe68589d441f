"""Differences between two models: signature, opsets, nodes, attributes, weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError, UsageError
from onnxbuild.onnxkit.differences.changes import Change, changes_of, inner_pairs
from onnxbuild.onnxkit.differences.graph_view import GraphView, view_of_function, view_of_graph
from onnxbuild.onnxkit.differences.matching import match_graphs
from onnxbuild.onnxkit.differences.values import shown_apart
from onnxbuild.onnxkit.model.inspect import inputs_of, type_text
from onnxbuild.onnxkit.model.model_files import external_files, load_model

if TYPE_CHECKING:
    import onnx

_STANDARD = ("", "ai.onnx")
_MOST_LISTED = 3


@dataclass(frozen=True, slots=True)
class SignatureChanged:
    """An input or output.

    Attributes:
        direction: `input` or `output`.
        name: Its name.
        old: `float32 [batch, 4]`; empty if it is new.
        new: Empty if it is gone.
    """

    direction: str
    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ModelFact:
    """A field of the model itself.

    Attributes:
        name: `opset`, `opset of DOMAIN`, `IR version`, `metadata 'KEY'`, or the list of weights that are inputs, too.
        old: Empty if it is new.
        new: Empty if it is gone.
    """

    name: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Inside:
    """A change within a subgraph or a function.

    Attributes:
        where: Label of the node, and the attribute; or the function.
        change: The difference there.
    """

    where: str
    change: Change


@dataclass(frozen=True, slots=True)
class ModelDifferences:
    """Two models compared.

    Attributes:
        same_bytes: The files are equal, external data included.
        signature: Inputs and outputs.
        facts: Opsets and the like.
        changes: Nodes, attributes, connections and weights.
        sizes: Bytes of the two, external data included.
        nodes: Nodes of the two, without constants.
    """

    same_bytes: bool
    signature: tuple[SignatureChanged, ...]
    facts: tuple[ModelFact, ...]
    changes: tuple[Change | Inside, ...]
    sizes: tuple[int, int]
    nodes: tuple[int, int]


def compare_models(one: Path, other: Path) -> ModelDifferences:
    """Compare two models; weights in files next to them are mapped.

    Raises:
        StepError: One of them is not ONNX, is damaged, or lacks its weights.
        UsageError: One has no graph.
    """
    try:
        return _compared(one, other)
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError) as error:
        raise StepError(
            f"a model is damaged: {type(error).__name__}: {error}",
            where=f"{one}, {other}",
            fix="onnx.checker.check_model says which one",
        ) from error


def _compared(one: Path, other: Path) -> ModelDifferences:
    loaded = [_load(path) for path in (one, other)]
    sizes = _size(one), _size(other)
    if sizes[0] == sizes[1] and _same_bytes(one, other):
        count = sum(1 for _ in loaded[0].graph.node)
        return ModelDifferences(
            same_bytes=True, signature=(), facts=(), changes=(), sizes=sizes, nodes=(count, count)
        )
    views = view_of_graph(loaded[0].graph), view_of_graph(loaded[1].graph)
    return ModelDifferences(
        same_bytes=False,
        signature=tuple(_signature(*loaded)),
        facts=tuple(_facts(*loaded)),
        changes=(*_changes(views[0], views[1], ""), *_functions(*loaded)),
        sizes=sizes,
        nodes=(len(views[0].nodes), len(views[1].nodes)),
    )


def _load(path: Path) -> onnx.ModelProto:
    model = load_model(path, weights="mapped")
    if not model.ir_version or not model.HasField("graph"):
        raise UsageError(
            f"{path} is not an ONNX model: it has no graph", fix="check that the file is complete"
        )
    return model


def _size(path: Path) -> int:
    return sum((path.parent / name).stat().st_size for name in _file_names(path))


def _file_names(path: Path) -> tuple[str, ...]:
    return (path.name, *external_files(path))


def _same_bytes(one: Path, other: Path) -> bool:
    """Return whether two models' files are equal; those of external data must have the same names."""
    names = _file_names(one), _file_names(other)
    if names[0][1:] != names[1][1:]:
        return False
    for left, right in zip(*names, strict=True):
        with (one.parent / left).open("rb") as a, (other.parent / right).open("rb") as b:
            while True:
                chunk = a.read(1 << 20)
                if chunk != b.read(1 << 20):
                    return False
                if not chunk:
                    break
    return True


def _changes(one: GraphView, other: GraphView, where: str) -> Iterator[Change | Inside]:
    match = match_graphs(one, other)
    for change in changes_of(match):
        yield Inside(where, change) if where else change
    for label, left, right in inner_pairs(match):
        inner = f"{where}, {label}" if where else label
        yield from _changes(view_of_graph(left), view_of_graph(right), inner)


def _signature(one: onnx.ModelProto, other: onnx.ModelProto) -> Iterator[SignatureChanged]:
    pairs: tuple[tuple[str, Any, Any], ...] = (
        ("input", inputs_of(one.graph), inputs_of(other.graph)),
        ("output", one.graph.output, other.graph.output),
    )
    for direction, olds, news in pairs:
        old = {value.name: type_text(value.type) for value in olds}
        new = {value.name: type_text(value.type) for value in news}
        for name in dict.fromkeys((*old, *new)):
            if old.get(name) != new.get(name):
                yield SignatureChanged(direction, name, old.get(name, ""), new.get(name, ""))
        if sorted(old) == sorted(new) and list(old) != list(new):
            yield SignatureChanged(f"order of {direction}s", "", ", ".join(old), ", ".join(new))


def _held(model: onnx.ModelProto) -> set[str]:
    """Names of initializers, which inputs may have, too."""
    sparse = (tensor.values.name for tensor in model.graph.sparse_initializer)
    return {*(tensor.name for tensor in model.graph.initializer), *sparse}


def _facts(one: onnx.ModelProto, other: onnx.ModelProto) -> Iterator[ModelFact]:
    old, new = _opsets(one), _opsets(other)
    for name in dict.fromkeys((*old, *new)):
        if old.get(name) != new.get(name):
            yield ModelFact(name, old.get(name, ""), new.get(name, ""))
    if one.ir_version != other.ir_version:
        yield ModelFact("IR version", str(one.ir_version), str(other.ir_version))
    ours, theirs = ({each.key: each.value for each in m.metadata_props} for m in (one, other))
    for key in dict.fromkeys((*ours, *theirs)):
        if ours.get(key) != theirs.get(key):
            texts = shown_apart(ours.get(key, ""), theirs.get(key, ""))
            yield ModelFact(
                f"metadata '{key}'",
                texts[0] if key in ours else "",
                texts[1] if key in theirs else "",
            )
    both = _held(one) & _held(other)
    replaceable = [[v.name for v in m.graph.input if v.name in both] for m in (one, other)]
    if set(replaceable[0]) != set(replaceable[1]):
        yield ModelFact("weights that callers may replace", *map(_listed, replaceable))


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_LISTED
    said = ", ".join(f"'{name}'" for name in names[:_MOST_LISTED])
    return f"{said} and {more:,} more" if more > 0 else said or "none"


def _opsets(model: onnx.ModelProto) -> dict[str, str]:
    return {
        "opset" if each.domain in _STANDARD else f"opset of {each.domain}": str(each.version)
        for each in model.opset_import
    }


def _functions(one: onnx.ModelProto, other: onnx.ModelProto) -> Iterator[Change | Inside]:
    """Changes in the functions that both models define; one side's own show at the nodes that call them."""
    others: Mapping[tuple[str, str], Any] = {(f.domain, f.name): f for f in other.functions}
    for each in one.functions:
        match = others.get((each.domain, each.name))
        if match is not None and each != match:
            views = view_of_function(each), view_of_function(match)
            yield from _changes(views[0], views[1], f"function '{each.domain}.{each.name}'")
