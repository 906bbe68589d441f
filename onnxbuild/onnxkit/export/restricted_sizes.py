"""Check a graph at sizes that torch.export does not answer for, since forward chose by sizes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from onnxbuild.core.axis import Point
from onnxbuild.onnxkit.export.errors import SizeChoiceError
from onnxbuild.onnxkit.export.export_check import Probes, compare_at


def check_beyond(folder: Path, probes: Probes, restricted: Mapping[str, int], where: str) -> None:
    """Compare the graph with PyTorch where restricted axes are just beyond their range, and all others at their maximum.

    Args:
        folder: Holds the model.
        probes: PyTorch's outputs; only the module and what it takes are used.
        restricted: From `torch_wrapping.restricted_axes`; nothing is done if it is empty.
        where: `recipe:step`, for messages.

    Raises:
        SizeChoiceError: They differ.
        StepError: Forward fails there.
    """
    if not restricted:
        return
    sizes = {
        axis.name: axis.nearest(restricted[axis.name] + 1) if axis.name in restricted else axis.max
        for axis in probes.axes
    }
    said = compare_at(folder, probes, Point("beyond", sizes), where)
    if said:
        narrower = ", ".join(f"{name}: {{max: {most}}}" for name, most in restricted.items())
        raise SizeChoiceError(
            f"forward chooses by sizes, and the graph has one choice: {said}",
            where=where,
            fix="choose by `torch.where` or `torch.cond` in place of Python's `if`, or narrow "
            f"`dynamic_axes: {{{narrower}}}`",
        )
