"""Fold what depends on constants alone, as PyTorch's exporters do; but no result that is larger than what it is made of."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir
    import torch

_SMALL_BYTES = 1024
"""Results up to this size are folded whatever they are made of, as in `optimize`."""

_FOLDED_TO_BYTES = 4
"""Bytes of an element of float32, which TorchScript's folding turns narrower weights into."""


def optimize_graph(model: onnx_ir.Model) -> None:
    """Do what `torch.onnx.export(optimize=True)` does after dynamo's export, in place."""
    from onnxscript.optimizer import optimize_ir
    from onnxscript.rewriter import onnx_fusions

    optimize_ir(model, should_fold=_should_fold)
    onnx_fusions.fuse(model)


def has_narrow_weights(module: torch.nn.Module) -> bool:
    """Return whether a module holds more than a few weights in fewer than 32 bits, masks aside.

    TorchScript's folding has no limit: it would write them out in 32 bits.
    """
    import itertools

    import torch

    state = itertools.chain(module.parameters(), module.buffers())
    narrow = (
        each.numel() * each.element_size()
        for each in state
        if each.element_size() < _FOLDED_TO_BYTES and each.dtype != torch.bool
    )
    return bool(sum(narrow) > _SMALL_BYTES)


def _should_fold(node: onnx_ir.Node) -> bool | None:
    """Return False for a node whose result is larger than its inputs; None leaves it to onnxscript's own rules."""
    made = sum(_bytes(each) for each in node.outputs)
    given = (each.const_value for each in node.inputs if each is not None)
    inputs = sum(each.nbytes for each in given if each is not None)
    return False if made > max(_SMALL_BYTES, inputs) else None


def _bytes(value: onnx_ir.Value) -> int:
    """The bytes of a value; 0 where its type or shape is not known."""
    if value.shape is None or value.dtype is None or not value.shape.is_static():
        return 0
    return math.ceil(math.prod(value.shape.numpy()) * value.dtype.itemsize)
