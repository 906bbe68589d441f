"""Move every value inside a module or a graph by its last bit, to see what rounding does to it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.accuracy.rounding import LAST_BIT
from onnxbuild.onnxkit.model.graphs import opset_of
from onnxbuild.onnxkit.model.scopes import all_names, name_maker

if TYPE_CHECKING:
    import onnx

_FIRST_OPSET = 11
"""The first in which Equal takes floats."""


def rounding_noise(seed: int) -> AbstractContextManager[Any]:
    """Move what each operator makes at random: float32 values that are neither whole numbers nor infinite.

    What is a view, or was written in place, stays as it is.

    Args:
        seed: Of the draws.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_map_only

    random = torch.Generator().manual_seed(seed)

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.dtype != torch.float32 or tensor.device.type != "cpu":
            return tensor
        bits = torch.rand(tensor.shape, generator=random).mul_(2).sub_(1).mul_(LAST_BIT)
        whole = (tensor == tensor.floor()) | ~tensor.isfinite()
        return torch.where(whole, tensor, tensor + tensor * bits)

    class Noise(TorchDispatchMode):  # type: ignore[misc] # torch's own
        def __torch_dispatch__(self, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            if _returns_alias(func._schema):  # noqa: SLF001 - operators say it nowhere else
                return made
            return tree_map_only(torch.Tensor, moved, made)

    return Noise()


def _returns_alias(schema: Any) -> bool:
    return any(each.alias_info is not None for each in schema.returns)


def add_rounding_noise(model: onnx.ModelProto) -> bool:
    """Move what each node of the main graph makes at random, in place: floats that are no whole numbers, nor infinite.

    Args:
        model: Each value inside has an entry in `value_info`.

    Returns: Whether its opset has what that takes.
    """
    import onnx
    from onnx.helper import make_node

    if opset_of(model) < _FIRST_OPSET:
        return False
    graph = model.graph
    floats = {
        value.name
        for value in (*graph.value_info, *graph.output)
        if value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
    }
    make = name_maker(all_names(model))
    nodes = list(graph.node)
    del graph.node[:]
    del graph.value_info[:]
    for node in nodes:
        added = []
        for n, name in enumerate(node.output):
            if name not in floats:
                continue
            exact, bits, change, moved, floor, whole = (
                make(f"{name}/{word}") for word in ("exact", "bits", "by", "to", "floor", "whole")
            )
            node.output[n] = exact
            noise = {"low": -LAST_BIT, "high": LAST_BIT, "seed": float(len(graph.node) + n)}
            added += [
                make_node("RandomUniformLike", [exact], [bits], **noise),
                make_node("Mul", [exact, bits], [change]),
                make_node("Add", [exact, change], [moved]),
                make_node("Floor", [exact], [floor]),
                make_node("Equal", [exact, floor], [whole]),
                make_node("Where", [whole, exact, moved], [name]),
            ]  # fmt: skip
        graph.node.extend([node, *added])
    return True
