"""Products with weights as ONNX Runtime's fusions write them, brought into the form that quantizers know.

MatMulScaleFusion and MatmulTransposeFusion put a scale or a transposition next to a MatMul into a FusedMatMul, and
no quantizer takes weights of that operator. The session that loads the model makes the same node again, so
nothing is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.model.inspect import dimensions
from onnxbuild.onnxkit.model.scopes import GraphScope, all_names, name_maker, scopes

if TYPE_CHECKING:
    import onnx

FUSED = "FusedMatMul"
_MATRIX = 2
_UNHANDLED = ("transB", "transBatchA", "transBatchB")


def split_weight_products(model: onnx.ModelProto) -> None:
    """Write each FusedMatMul whose second factor is a weight as Transpose, MatMul and Mul, in place.

    A product of two activations stays fused, and so does one whose transposed factor has no known rank.
    """
    make = name_maker(all_names(model))
    for scope in list(scopes(model)):
        if not any(_is_product_with_weight(node, scope) for node in scope.graph.node):
            continue
        nodes = list(scope.graph.node)
        ranks = {
            value.name: len(shape)
            for value in (*scope.graph.value_info, *scope.graph.input)
            if (shape := dimensions(value)) is not None
        }
        del scope.graph.node[:]
        for node in nodes:
            split = _is_product_with_weight(node, scope)
            scope.graph.node.extend(_split(node, scope, ranks, make) if split else [node])


def _is_product_with_weight(node: onnx.NodeProto, scope: GraphScope) -> bool:
    if node.op_type != FUSED or node.domain != "com.microsoft":
        return False
    given = _attributes(node)
    weight = scope.initializer(node.input[1])
    return (
        weight is not None
        and len(weight.dims) == _MATRIX
        and not any(given.get(name) for name in _UNHANDLED)
    )


def _split(
    node: onnx.NodeProto, scope: GraphScope, ranks: dict[str, int], make: Callable[[str], str]
) -> Iterator[onnx.NodeProto]:
    import onnx
    from onnx import helper

    given = _attributes(node)
    left, weight = node.input
    alpha = float(given.get("alpha", 1.0))
    if given.get("transA"):
        rank = ranks.get(left, 0)
        if rank < _MATRIX:
            yield node
            return
        perm = [*range(rank - 2), rank - 1, rank - 2]
        turned = make(f"{left}_transposed")
        yield helper.make_node("Transpose", [left], [turned], name=turned, perm=perm)
        left = turned
    if alpha == 1.0:
        yield helper.make_node("MatMul", [left, weight], [*node.output], name=node.name)
        return
    product, scale = make(f"{node.output[0]}_product"), make(f"{node.output[0]}_scale")
    found = scope.initializer(weight)
    kind = onnx.TensorProto.FLOAT if found is None else found.data_type
    scope.graph.initializer.append(helper.make_tensor(scale, kind, [], [alpha]))
    yield helper.make_node("MatMul", [left, weight], [product], name=node.name)
    yield helper.make_node("Mul", [product, scale], [*node.output], name=product)


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    from onnx import helper

    return {each.name: helper.get_attribute_value(each) for each in node.attribute}
