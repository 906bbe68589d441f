"""Layers like those of a TorchScript program, which has tensors and names of classes alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_OPERATORS = {
    "aten::linear": ("Linear", 1),
    "aten::conv1d": ("Conv1d", 1),
    "aten::conv2d": ("Conv2d", 1),
    "aten::conv3d": ("Conv3d", 1),
    "aten::embedding": ("Embedding", 0),
}
"""Operator of a frozen graph -> the class of its layer, and which of its arguments is the weight."""

_GROUPS = "groups"
_GROUPS_PLACE = 6
"""Position of `groups` among the arguments of aten::conv1d, conv2d and conv3d."""


def script_layers(program: Any) -> Iterator[tuple[str, torch.nn.Module]]:
    """Yield (name, layer), in the order in which they are defined; then those of a frozen program's graph.

    Their tensors have no storage. Layers that nothing is known of are left out.

    Args:
        program: A ScriptModule.
    """
    for name, part in program.named_modules():
        tensors = dict(part.named_parameters(recurse=False))
        weight = tensors.get("weight", tensors.get("weight_ih_l0"))
        if weight is not None:
            layer = _layer(
                str(part.original_name),
                weight,
                groups=int(getattr(part, _GROUPS, 1)),
                batch_first=bool(getattr(part, "batch_first", False)),
            )
            if layer is not None:
                yield name, layer
    yield from _of_graph(program)


def _of_graph(program: Any) -> Iterator[tuple[str, torch.nn.Module]]:
    import torch

    for number, node in enumerate(program.inlined_graph.nodes()):
        name, place = _OPERATORS.get(node.kind(), ("", 0))
        values = [each.toIValue() for each in node.inputs()] if name else []
        if name and isinstance(values[place], torch.Tensor):
            groups = values[_GROUPS_PLACE] if name.startswith("Conv") else 1
            layer = _layer(name, values[place], groups=groups or 1, batch_first=False)
            if layer is not None:
                yield f"operator {number}", layer


def _layer(
    name: str, weight: torch.Tensor, *, groups: int, batch_first: bool
) -> torch.nn.Module | None:
    from torch import nn

    size, where = tuple(weight.shape), {"device": "meta", "dtype": weight.dtype}
    match name, size:
        case "LSTM" | "GRU" | "RNN", (_, taken):
            return getattr(nn, name)(taken, 1, batch_first=batch_first, **where)
        case "Linear", (out, taken):
            return nn.Linear(taken, out, **where)
        case "Embedding" | "EmbeddingBag", (rows, wide):
            return getattr(nn, name)(rows, wide, **where)
        case "Conv1d" | "Conv2d" | "Conv3d", (out, taken, *kernel):
            return getattr(nn, name)(taken * groups, out * groups, kernel, groups=groups, **where)
        case "LayerNorm", _:
            return nn.LayerNorm(size, **where)
        case "BatchNorm1d", (features,):
            return nn.BatchNorm1d(features, **where)
    return None
