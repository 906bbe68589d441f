"""Additions to tf2onnx: an operator, a fixed order of nodes, errors for missing operators; run in its environment."""

from __future__ import annotations

import itertools
from typing import Any

from onnxbuild.onnxkit.converters.child import Refused, first_line


def number_nodes() -> None:
    """Have sets of tf2onnx's nodes iterate in one order: by default a node's hash is its address.

    Which of several equal constants keeps its name depends on that order.
    """
    from tf2onnx.graph import Node

    if Node.__hash__ is not object.__hash__ or Node.__eq__ is not object.__eq__:
        return
    numbers = itertools.count()
    construct = Node.__init__

    def numbered(self: Any, *arguments: Any, **named: Any) -> None:
        self.onnxbuild_number = next(numbers)
        construct(self, *arguments, **named)

    Node.__init__ = numbered
    Node.__hash__ = lambda self: self.onnxbuild_number


def erfc(context: Any, node: Any, _name: str, _arguments: Any) -> Any:
    """Write `1 - erf(x)`, of which exact GELU is made: tf2onnx 1.17 has no Erfc."""
    import numpy as np
    from tf2onnx import utils

    (taken,), (output,) = node.input, node.output
    kind, shape = context.get_dtype(output), context.get_shape(output)
    context.remove_node(node.name)
    one = context.make_const(
        utils.make_name(f"{node.name}_one"), np.array(1, utils.map_onnx_to_numpy_type(kind))
    )
    erf = context.make_node("Erf", [taken], dtypes=[kind], shapes=[shape])
    return context.make_node(
        "Sub",
        [one.output[0], erf.output[0]],
        outputs=[output],
        name=node.name,
        dtypes=[kind],
        shapes=[shape],
    )


class Unsupported:
    """Check for operations that tf2onnx can't convert: it only logs them, and leaves them in the graph."""

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Report what tf2onnx raises for operators.

        Raises:
            Refused: It names them.
        """
        if isinstance(error, (ValueError, RuntimeError, NotImplementedError)):
            raise Refused(
                f"tf2onnx can't convert the model: {first_line(str(error))}", _REWRITE
            ) from error

    def check(self, model: Any) -> None:
        """See that all operators are ONNX's.

        Raises:
            Refused: Some are TensorFlow's.
        """
        import onnx

        versions = {each.domain: each.version for each in model.opset_import}
        unknown = dict[str, None]()
        for node in _nodes(model.graph):
            if node.domain in ("", "ai.onnx") and not _is_known(
                onnx, node.op_type, versions.get("", 1)
            ):
                unknown[node.op_type] = None
        if unknown:
            raise Refused(f"tf2onnx has no ONNX for {', '.join(sorted(unknown))}", _REWRITE)


_REWRITE = "write the model without these operations, or choose a signature that stops before them; see the step's log"


def _is_known(onnx: Any, name: str, version: int) -> bool:
    try:
        onnx.defs.get_schema(name, version, "")
    except onnx.defs.SchemaError:
        return False
    return True


def _nodes(graph: Any) -> Any:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g)
