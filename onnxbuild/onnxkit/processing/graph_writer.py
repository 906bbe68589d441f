"""Write nodes and constants of one operation into a graph in the making."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import onnx


_NONE: Mapping[str, Any] = MappingProxyType({})


class GraphWriter:
    """Nodes in order, and the constants that they read.

    Attributes:
        nodes: In order.
        constants: Initializers.
        types: Of values that operators give whose schema ONNX does not know.
    """

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.types: list[onnx.ValueInfoProto] = []
        self._prefix = ""
        self._count = 0

    def begin(self, prefix: str) -> None:
        """Begin another operation; its names start with `prefix`."""
        self._prefix, self._count = prefix, 0

    def node(
        self,
        operator: str,
        *inputs: str,
        results: Sequence[str] = ("",),
        attributes: Mapping[str, Any] = _NONE,
        domain: str = "",
    ) -> str:
        """Add a node; returns its first output.

        Args:
            operator: Its type.
            inputs: Names of values; empty for one that is left out.
            results: Names of its outputs; an empty one for a new name.
            attributes: The node's.
            domain: Of the operator; empty for ONNX's own.
        """
        import onnx

        outputs = [each or self._name(operator) for each in results]
        name = self._name(operator)
        self.nodes.append(
            onnx.helper.make_node(
                operator, list(inputs), outputs, name=name, domain=domain or None, **attributes
            )
        )
        return outputs[0]

    def constant(self, value: Any, dtype: str) -> str:
        """Add an initializer; returns its name.

        Args:
            value: An array, or what numpy makes one of.
            dtype: As numpy spells it; `string` for text.
        """
        import numpy as np
        import onnx

        name = self._name("constant")
        if dtype == "string":
            encoded = [str(each).encode("utf-8") for each in value]
            tensor = onnx.helper.make_tensor(
                name, onnx.TensorProto.STRING, [len(encoded)], encoded
            )
        else:
            array: np.ndarray = np.asarray(value, dtype)
            tensor = onnx.numpy_helper.from_array(array, name)
        self.constants.append(tensor)
        return name

    def cast(self, value: str, dtype: str, result: str = "") -> str:
        """Add a Cast; returns its output."""
        import numpy as np
        import onnx

        kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.node("Cast", value, results=(result,), attributes={"to": kind})

    def _name(self, stem: str) -> str:
        self._count += 1
        return f"{self._prefix}/{stem}_{self._count}"
