"""Adapt a model to a recipe, in place: names, fixed sizes, fewer outputs, names of axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.export.names import settle_names
from onnxbuild.onnxkit.model.graphs import all_graphs, keep, names_read
from onnxbuild.onnxkit.model.inspect import dimensions
from onnxbuild.onnxkit.model.scopes import name_maker
from onnxbuild.onnxkit.sources.outline import UNKNOWN

if TYPE_CHECKING:
    import onnx


_FIRST_IR, _LAST_IR = 4, 13
"""IR versions: from 4 on, weights need not be inputs; 13 is the last that ONNX Runtime 1.31 reads, and what 14
adds (6-bit floats, opaque types) it could not run. `onnx.helper` writes 14."""

_NO_WRAPPER = "\0"


def adapt(
    model: onnx.ModelProto,
    inputs: Sequence[DummyInput],
    outputs: Sequence[str],
    rename: Mapping[str, str],
    where: str,
) -> None:
    """Give a model the recipe's names, sizes and outputs, in place.

    A dimension that the recipe writes as a number is fixed; one that the model fixes stays, and the
    interface does not match then. Nodes that no chosen output needs go.

    Args:
        model: As it was made; its weights may be left out.
        inputs: As the recipe declares them.
        outputs: Names of the recipe, in order; empty takes all.
        rename: The model's names of inputs and outputs -> the recipe's.
        where: `recipe:step`.

    Raises:
        StepError: The model has no such output, or one name for what the recipe has two for.
    """
    model.ir_version = min(max(model.ir_version, _FIRST_IR), _LAST_IR)
    _clear_unknown_sizes(model)
    if rename:
        settle_names(model, rename, _NO_WRAPPER)
    _choose_outputs(model, outputs, where)
    _check_shared(model, inputs, where)
    name_axes(model, inputs)


def fixed_sizes(
    model: onnx.ModelProto, inputs: Sequence[DummyInput], rename: Mapping[str, str]
) -> dict[str, int]:
    """The recipe's name of an input -> the first size that the recipe fixes and the model leaves open.

    Args:
        model: As it was made.
        inputs: As the recipe declares them.
        rename: The model's names of inputs and outputs -> the recipe's.
    """
    declared = {each.name: each.shape for each in inputs}
    found: dict[str, int] = {}
    for value in model.graph.input:
        name = rename.get(value.name, value.name)
        sizes = zip(dimensions(value) or (), declared.get(name, ()), strict=False)
        for theirs, ours in sizes:
            if isinstance(ours, int) and (not isinstance(theirs, int) or theirs < 0):
                found.setdefault(name, ours)
    return found


def _clear_unknown_sizes(model: onnx.ModelProto) -> None:
    """Leave out the -1, `?`, `None` and empty names that converters write for a size that is not known."""
    for dim in _dimensions(model):
        if dim.dim_value < 0 or (dim.HasField("dim_param") and dim.dim_param in UNKNOWN):
            dim.Clear()


def _choose_outputs(model: onnx.ModelProto, outputs: Sequence[str], where: str) -> None:
    found = {value.name: n for n, value in enumerate(model.graph.output)}
    if not outputs or list(outputs) == list(found):
        return
    for name in outputs:
        if name not in found:
            raise StepError(
                f"the model has no output '{name}'; it has {', '.join(found)}",
                where=where,
                fix=did_you_mean(name, found) or f"write `outputs: [{', '.join(found)}]`",
            )
    place = {name: n for n, name in enumerate(outputs)}
    keep(model.graph.output, lambda value: value.name in place)
    model.graph.output.sort(key=lambda value: place[value.name])
    _drop_unneeded(model.graph)


def _drop_unneeded(graph: onnx.GraphProto) -> None:
    """Remove the nodes that no output needs."""
    makers = {name: n for n, node in enumerate(graph.node) for name in node.output if name}
    needed = set[int]()
    waiting = [makers[value.name] for value in graph.output if value.name in makers]
    while waiting:
        number = waiting.pop()
        if number not in needed:
            needed.add(number)
            waiting += [makers[name] for name in names_read(graph.node[number]) if name in makers]
    numbers = iter(range(len(graph.node)))
    keep(graph.node, lambda _: next(numbers) in needed)


def name_axes(model: onnx.ModelProto, inputs: Sequence[DummyInput]) -> None:
    """Give the dynamic dimensions of a model the recipe's names or sizes, wherever they are, in place.

    A dimension without a name gets the recipe's. A name of the recipe that the model has for something else
    gives way there (`NAME_1`).

    Args:
        model: Its weights need not be loaded.
        inputs: As the recipe declares them.
    """
    names: dict[str, int | str] = {}
    for _, _, found, want in _dynamic(model, inputs):
        if found != "?":
            names.setdefault(found, want)
    named = [dim for dim in _dimensions(model) if dim.dim_param]
    taken = {dim.dim_param for dim in named}
    make = name_maker(taken | {size for each in inputs for size in map(str, each.shape)})
    wanted = {want for each in inputs for want in each.shape if isinstance(want, str)}
    names.update({name: make(name) for name in sorted((taken & wanted) - names.keys())})
    nameless = [
        (value, n, want) for value, n, found, want in _dynamic(model, inputs) if found == "?"
    ]
    for dim in named:
        if dim.dim_param in names:
            _set(dim, names[dim.dim_param])
    for value, n, want in nameless:
        _set(value.type.tensor_type.shape.dim[n], want)
    _give_ranks(model, inputs)


def _check_shared(model: onnx.ModelProto, inputs: Sequence[DummyInput], where: str) -> None:
    """Check that the recipe writes one size or axis wherever the model has one name.

    Raises:
        StepError: It writes two.
    """
    first: dict[str, tuple[str, int, int | str]] = {}
    for value, n, found, want in _dynamic(model, inputs):
        name, place, other = first.setdefault(found, (value.name, n, want))
        if found != "?" and other != want:
            raise StepError(
                f"the model calls dimension {place} of '{name}' and dimension {n} of '{value.name}' both "
                f"'{found}', so that they have one size; the recipe writes {other} and {want}",
                where=where,
                fix=f"write {other} or {want} in both shapes in `dummy_inputs`",
            )


def _dynamic(
    model: onnx.ModelProto, inputs: Sequence[DummyInput]
) -> Iterator[tuple[onnx.ValueInfoProto, int, str, int | str]]:
    """Yield (input, dimension, the model's name for it, what the recipe writes) where the model fixes no size."""
    declared = {each.name: each.shape for each in inputs}
    for value in model.graph.input:
        shape, wanted = dimensions(value), declared.get(value.name, ())
        if shape is None or len(shape) != len(wanted):
            continue
        for n, (found, want) in enumerate(zip(shape, wanted, strict=True)):
            if isinstance(found, str):
                yield value, n, found, want


def _dimensions(model: onnx.ModelProto) -> Iterator[onnx.TensorShapeProto.Dimension]:
    for graph in all_graphs(model):
        for value in (*graph.input, *graph.output, *graph.value_info):
            yield from value.type.tensor_type.shape.dim


def _give_ranks(model: onnx.ModelProto, inputs: Sequence[DummyInput]) -> None:
    """Write the recipe's shape where the model has none, not even a rank."""
    declared = {each.name: each.shape for each in inputs}
    for value in model.graph.input:
        if dimensions(value) is None and value.type.HasField("tensor_type"):
            for size in declared.get(value.name, ()):
                _set(value.type.tensor_type.shape.dim.add(), size)


def _set(dim: onnx.TensorShapeProto.Dimension, size: int | str) -> None:
    if isinstance(size, int):
        dim.dim_value = size
    else:
        dim.dim_param = size
