"""Find transposes whose fp16 form makes ONNX Runtime crash as it loads the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.onnxkit.model.inspect import dimensions
from onnxbuild.onnxkit.model.scopes import GraphScope, scopes

if TYPE_CHECKING:
    import onnx

_LEAST_RANK = 3


def batch_transposes(model: onnx.ModelProto) -> tuple[str, ...]:
    """Nodes that move the first dimension of a MatMul's factor inwards, where the other factor has another rank.

    `MatMul(Transpose(x, perm=[1, 0, 2]), weight)` is what a recurrence with `batch_first` and a linear layer
    after it become. ONNX Runtime's MatmulTransposeFusion (core/optimizer/matmul_transpose_fusion.cc) leaves it
    alone in fp32, and takes it in fp16, where it looks through casts: 1.31.1 ends with SIGSEGV then.

    Args:
        model: Values typed as far as their ranks are known; a factor of unknown rank counts as another.
    """
    found: dict[str, None] = {}
    for scope in scopes(model):
        makers = {name: node for node in scope.graph.node for name in node.output}
        ranks = _ranks(scope)
        for node in scope.graph.node:
            if node.op_type != "MatMul":
                continue
            for factor, other in (node.input, reversed(node.input)):
                maker = makers.get(factor)
                if maker is None or maker.op_type != "Transpose":
                    continue
                order = next((list(a.ints) for a in maker.attribute if a.name == "perm"), [])
                if _moves_batch(order) and ranks.get(other) != len(order):
                    found[maker.name] = None
    return tuple(found)


def _moves_batch(order: list[int]) -> bool:
    """Return whether dimension 0 becomes one of the last two, all before it moving one place to the front."""
    rank = len(order)
    inner = [*range(1, rank - 1)]
    return rank >= _LEAST_RANK and order in (
        [*inner, 0, rank - 1],
        [*inner, rank - 1, 0],
    )


def _ranks(scope: GraphScope) -> dict[str, int]:
    """Rank of each value that a graph reads, where it is known."""
    ranks: dict[str, int] = {} if scope.outer is None else _ranks(scope.outer)
    for field in (scope.graph.input, scope.graph.output, scope.graph.value_info):
        for value in field:
            shape = dimensions(value)
            if shape is not None:
                ranks[value.name] = len(shape)
    ranks.update({name: len(tensor.dims) for name, tensor in scope.initializers.items()})
    return ranks
