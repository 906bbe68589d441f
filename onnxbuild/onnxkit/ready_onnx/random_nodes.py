"""Nodes that give other values at each run, by which nothing can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.export.agreement import unsteadiness
from onnxbuild.onnxkit.model.graphs import all_nodes

if TYPE_CHECKING:
    import onnx

_DRAW = {
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
}  # fmt: skip
_SHOWN = 3
_TRAINING_INPUTS = 3
"""Inputs of a Dropout with a flag that says whether it trains."""


def random_notes(
    model: onnx.ModelProto,
    folder: Path,
    inputs: Sequence[DummyInput],
    axes: Sequence[Axis],
    where: str,
) -> list[str]:
    """Return a note if a model gives other outputs at a second run, by nodes that draw random values.

    Args:
        model: Its weights need not be loaded.
        folder: Holds it.
        inputs: As the recipe declares them.
        axes: The recipe's.
        where: `recipe:step`.

    Raises:
        StepError: It fails.
    """
    nodes = [node.name for node in all_nodes(model) if _may_draw(node)]
    if not nodes:
        return []
    reason = unsteadiness(folder, inputs, axes, where)
    if not reason:
        return []
    shown = ", ".join(f"'{name}'" for name in nodes[:_SHOWN])
    more = f" and {len(nodes) - _SHOWN} more" if len(nodes) > _SHOWN else ""
    note = (
        f"the model gives other outputs at each run, so no variant can be compared with it: {reason}; it draws "
        f"random values at {shown}{more}: convert it again in evaluation mode, or give these nodes a `seed`"
    )
    return [note]


def _may_draw(node: onnx.NodeProto) -> bool:
    """Return whether a node may give other values at each run: a seed makes those of all sessions alike."""
    if node.op_type == "Dropout":
        return len(node.input) == _TRAINING_INPUTS and bool(node.input[2])
    return node.op_type in _DRAW and all(each.name != "seed" for each in node.attribute)
