"""Adapt a model to a recipe, in place: names, fixed sizes, fewer outputs, names of axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.export.names import settle_names
from onnxbuild.onnxkit.model.graphs import all_graphs, keep, names_read
from onnxbuild.onnxkit.model.inspect import dimensions

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
        StepError: The model has no such output.
    """
    model.ir_version = min(max(model.ir_version, _FIRST_IR), _LAST_IR)
    _clear_unknown_sizes(model)
    if rename:
        settle_names(model, rename, _NO_WRAPPER)
    _choose_outputs(model, outputs, where)
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
    """Leave out the -1, `?` and empty names that converters write for a size that is not known."""
    for graph in all_graphs(model):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_value < 0 or (dim.HasField("dim_param") and dim.dim_param in ("", "?")):
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

    A dimension without a name gets the recipe's. A name that stands for two of the recipe's axes stays,
    and the interface does not match then.

    Args:
        model: Its weights need not be loaded.
        inputs: As the recipe declares them.
    """
    declared = {each.name: each.shape for each in inputs}
    names: dict[str, int | str] = {}
    for value in model.graph.input:
        shape = dimensions(value)
        wanted = declared.get(value.name, ())
        if shape is None:
            _give_rank(value, wanted)
            shape = dimensions(value)
        if shape is None or len(shape) != len(wanted):
            continue
        for n, (found, want) in enumerate(zip(shape, wanted, strict=True)):
            if isinstance(found, int):
                continue
            if found == "?":
                _set(value.type.tensor_type.shape.dim[n], want)
            else:
                names.setdefault(found, want)
    for graph in all_graphs(model):
        for field in (graph.input, graph.output, graph.value_info):
            for value in field:
                for dim in value.type.tensor_type.shape.dim:
                    if dim.dim_param in names:
                        _set(dim, names[dim.dim_param])


def _give_rank(value: onnx.ValueInfoProto, wanted: Sequence[int | str]) -> None:
    """Write the recipe's shape where the model has none, not even a rank."""
    if value.type.HasField("tensor_type"):
        for size in wanted:
            _set(value.type.tensor_type.shape.dim.add(), size)


def _set(dim: onnx.TensorShapeProto.Dimension, size: int | str) -> None:
    if isinstance(size, int):
        dim.dim_value = size
    else:
        dim.dim_param = size
