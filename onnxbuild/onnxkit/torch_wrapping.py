"""What every exporter of a module is given: tensors by position, a flat tuple back, quiet."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.feeds import Feeds
from onnxbuild.onnxkit.module_outputs import named_outputs
from onnxbuild.onnxkit.tensor_types import tensor_of

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
    """For each input, dimension -> the Dim that its symbol shares across inputs."""
    import torch

    dims = {
        axis.name: torch.export.Dim(axis.name, min=axis.min, max=axis.max)
        for axis in axes
        if axis.min < axis.max
    }
    return tuple(
        {n: dims[name] for n, name in enumerate(each.shape) if name in dims} for each in inputs
    )


def example_tensors(inputs: Sequence[DummyInput], feeds: Feeds) -> tuple[torch.Tensor, ...]:
    """One tensor for each input, in order; the feeds are not shared with them."""
    return tuple(tensor_of(each.name, each.dtype, feeds[each.name]) for each in inputs)


@contextlib.contextmanager
def quiet() -> Iterator[list[warnings.WarningMessage]]:
    """Keep the exporters' graphs and notices out of the log; gives the warnings they raise."""
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


def trace_remarks(caught: Sequence[warnings.WarningMessage]) -> tuple[str, ...]:
    """What the tracer says it froze, with the user's line; one remark a line."""
    import torch

    remarks = [
        f"traced as a constant at {Path(each.filename).name}:{each.lineno}: "
        f"{str(each.message).split('. ')[0]}"
        for each in caught
        if issubclass(each.category, torch.jit.TracerWarning)
        and "site-packages" not in each.filename
    ]
    return tuple(dict.fromkeys(remarks))
