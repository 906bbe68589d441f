"""Wrapper of a module for any exporter: tensors by position, a flat tuple back; and its other arguments."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.axis import Dimension, is_sum, size_at, symbols_of
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.data.feeds import Feeds
from onnxbuild.onnxkit.model.tensor_types import tensor_of
from onnxbuild.onnxkit.modules.module_outputs import named_outputs

if TYPE_CHECKING:
    import torch

WRAPPED = "module"
"""The wrapper's name for the module inside."""


def flattening_wrapper(
    module: torch.nn.Module, inputs: Sequence[DummyInput], outputs: Sequence[str], where: str
) -> torch.nn.Module:
    """A module that takes tensors by position and returns a flat tuple, for any exporter.

    The tuple holds `outputs`, in their order; see `named_outputs`.
    """
    import torch

    names = [each.name for each in inputs]

    class Flattened(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            self.add_module(WRAPPED, module)

        def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            value = module(**dict(zip(names, tensors, strict=True)))
            return tuple(named_outputs(value, outputs, where, inputs=names).values())

    return Flattened().eval()  # the exporters restore the mode of the outermost module


def dynamic_shapes(
    inputs: Sequence[DummyInput], axes: Sequence[Axis]
) -> tuple[dict[int, Any], ...]:
    """Return, for each input, dimension -> the Dim that its symbol shares across inputs.

    Multiples are `k * Dim`. Dims can't be added (`Dim + Dim` raises): each sum is a Dim of its own, and
    torch.export finds out by itself what it is equal to.
    """
    import torch

    known = {axis.name: axis for axis in axes}
    dims: dict[Dimension, Any] = {}
    for each in inputs:
        for dimension in each.shape:
            low, high = _bounds(dimension, known)
            if dimension in dims or low == high:
                continue
            step = 1 if is_sum(dimension) else known[str(dimension)].multiple_of
            dim = torch.export.Dim(_base_name(dimension, step), min=low // step, max=high // step)
            dims[dimension] = dim if step == 1 else step * dim
    return tuple({n: dims[d] for n, d in enumerate(each.shape) if d in dims} for each in inputs)


def restricted_axes(
    program: torch.export.ExportedProgram, inputs: Sequence[DummyInput], axes: Sequence[Axis]
) -> dict[str, int]:
    """Return axis -> the greatest size that a program's guards allow, where the recipe declares greater ones.

    torch.onnx.export takes a program whose range is smaller than that of the `Dim` that it was given.

    Args:
        program: Of forward, its inputs by position.
        inputs: As the recipe declares them, in the program's order.
        axes: Those of their shapes.
    """
    import torch

    known = {axis.name: axis for axis in axes}
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}
    greatest = {symbol: bounds.upper for symbol, bounds in program.range_constraints.items()}
    found: dict[str, int] = {}
    for name, each in zip(program.graph_signature.user_inputs, inputs, strict=False):
        value = values.get(str(name))
        for dimension, size in zip(each.shape, getattr(value, "shape", ()), strict=False):
            axis = known.get(str(dimension))
            if axis is None or not isinstance(size, torch.SymInt):
                continue
            upper = size.node.expr.subs(greatest)
            if upper.is_number and bool(upper < axis.max):
                found[axis.name] = int(upper)
    return found


def dimension_spellings(inputs: Sequence[DummyInput], axes: Sequence[Axis]) -> dict[str, str]:
    """Return what graphs exported with `dynamic_shapes` call a dimension -> what the recipe calls it."""
    steps = {axis.name: axis.multiple_of for axis in axes}
    found = {}
    for dimension in dict.fromkeys(d for each in inputs for d in each.shape):
        step = steps.get(str(dimension), 1)
        if symbols_of(dimension):
            base = _base_name(dimension, step)
            found[base if step == 1 else f"{step}*{base}"] = str(dimension)
    return found


def _bounds(dimension: Dimension, axes: Mapping[str, Axis]) -> tuple[int, int]:
    """The least and the greatest size of a dimension."""
    low = {name: axes[name].min for name in symbols_of(dimension)}
    high = {name: axes[name].max for name in symbols_of(dimension)}
    return size_at(dimension, low), size_at(dimension, high)


def _base_name(dimension: Dimension, step: int) -> str:
    """The name of the Dim that stands for a dimension, an identifier."""
    name = str(dimension).replace(" + ", "_plus_")
    if step > 1:
        return f"_{name}_per_{step}"
    return f"_{name}" if is_sum(dimension) else name


def example_tensors(inputs: Sequence[DummyInput], feeds: Feeds) -> tuple[torch.Tensor, ...]:
    """One tensor for each input, in order; the feeds are not shared with them."""
    return tuple(tensor_of(each.name, each.dtype, feeds[each.name]) for each in inputs)


@contextlib.contextmanager
def quiet() -> Iterator[list[warnings.WarningMessage]]:
    """Keep the exporters' graphs and notices out of the log; gives the warnings they raise."""
    import logging

    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)  # `torchvision is not installed`, four times an export
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(io.StringIO()),
        ):
            warnings.simplefilter("always")
            yield caught
    finally:
        logger.setLevel(level)


@contextlib.contextmanager
def without_output() -> Iterator[None]:
    """Drop what C++ code writes to the process's standard output: a graph that it is asked to print."""
    kept = os.dup(1)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def trace_remarks(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """Return what the tracer says it froze, with the user's line; one remark a line."""
    import torch

    remarks = [
        f"traced as a constant at {Path(each.filename).name}:{each.lineno}: "
        f"{str(each.message).split('. ')[0]}"
        for each in caught
        if issubclass(each.category, torch.jit.TracerWarning)
        and "site-packages" not in each.filename
    ]
    return tuple(dict.fromkeys(remarks))
