"""PyTorch operators that become one node of a custom domain: `operators.nodes` of a recipe.

Tensors become the node's inputs, all other arguments its attributes, under the names of the operator's
schema in PyTorch; arguments that are None are left out.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.onnxkit.sessions.element_types import runtime_types

if TYPE_CHECKING:
    import torch

_KINDS: Mapping[str, tuple[str, str]] = {
    "int": ("INT", "i"), "bool": ("INT", "b"), "float": ("FLOAT", "f"), "str": ("STRING", "s"),
    "List[int]": ("INTS", "is"), "List[bool]": ("INTS", "is"), "List[float]": ("FLOATS", "fs"),
}  # fmt: skip
"""Type in PyTorch's schema -> (ONNX's attribute type, how TorchScript's exporter reads a constant)."""


@dataclass(frozen=True, slots=True)
class OpaqueNode:
    """One PyTorch operator and its node.

    Attributes:
        name: `mylib::fancy`.
        overload: The operator.
        domain: Of the node.
        operator: The node's type.
        version: Of the domain.
    """

    name: str
    overload: torch._ops.OpOverload
    domain: str
    operator: str
    version: int

    @property
    def arguments(self) -> Sequence[Any]:
        """PyTorch's, in order."""
        arguments: Sequence[Any] = self.overload._schema.arguments  # noqa: SLF001 - torch has no public name for it
        return arguments

    @property
    def outputs(self) -> int:
        """Number of tensors that the operator returns."""
        return len(self.overload._schema.returns)  # noqa: SLF001 - as above


def opaque_nodes(nodes: Mapping[str, str], where: str) -> tuple[OpaqueNode, ...]:
    """Find the operators of a recipe's `operators.nodes`; the model's module is loaded.

    Args:
        nodes: `NAMESPACE::NAME` or `NAMESPACE::NAME.OVERLOAD` -> `DOMAIN::NAME` or `DOMAIN::NAME@VERSION`.
        where: `recipe:step`, for messages.

    Raises:
        StepError: PyTorch has no such operator, or it takes or gives what no node can.
    """
    return tuple(_opaque_node(name, node, where) for name, node in nodes.items())


def _opaque_node(name: str, node: str, where: str) -> OpaqueNode:
    import torch

    space, _, rest = name.partition("::")
    operator, _, overload = rest.partition(".")
    every = torch._C._dispatch_get_all_op_names()  # noqa: SLF001 - torch has no public name for it
    known = [each for each in every if each.startswith(f"{space}::")]
    found = getattr(getattr(torch.ops, space), operator, None)
    if found is None or not hasattr(found, overload or "default"):
        raise StepError(
            f"operators.nodes names '{name}', which PyTorch does not have once the model is loaded",
            where=where,
            fix=did_you_mean(name, known)
            or "define it by `torch.library.custom_op` in the model's file, or in one that it imports",
        )
    domain, _, typed = node.partition("::")
    kind, _, version = typed.partition("@")
    made = OpaqueNode(name, getattr(found, overload or "default"), domain, kind, int(version or 1))
    for each in made.arguments:
        if each.alias_info is not None and each.alias_info.is_write:
            raise StepError(
                f"'{name}' changes its argument `{each.name}` in place, which no node can",
                where=where,
                fix="let it return the new tensor: `torch.library.custom_op(..., mutates_args=())`",
            )
        shown = _type(each)
        if not _is_tensor(shown) and shown not in _KINDS:
            raise StepError(
                f"'{name}' takes `{each.name}: {shown}`, which is neither a tensor nor an attribute of ONNX",
                where=where,
                fix="give the operator tensors, int, float, bool, str and lists of numbers, or write "
                "`export: {translations: FILE.py:CALLABLE}` for it",
            )
    returns = [str(each.type) for each in made.overload._schema.returns]  # noqa: SLF001 - as above
    if not returns or set(returns) != {"Tensor"}:
        raise StepError(
            f"'{name}' returns {', '.join(returns) or 'nothing'}; a node gives tensors",
            where=where,
            fix="let it return a tensor, or a tuple of tensors",
        )
    return made


def dynamo_nodes(nodes: Sequence[OpaqueNode]) -> dict[Any, Callable[..., Any]]:
    """Return PyTorch operator -> function that writes its node, for the dynamo exporter."""
    return {each.overload: _writer(each) for each in nodes}


def _writer(node: OpaqueNode) -> Callable[..., Any]:
    from onnxscript.values import Op, Opset

    opset = Opset(node.domain, node.version)

    def write(*given: Any, **named: Any) -> Any:
        names = [each.name for each in node.arguments]
        values = {**dict(zip(names, given, strict=False)), **named}
        inputs: list[Any] = []
        attributes: dict[str, Any] = {}
        for each in node.arguments:
            value = values.get(each.name, each.default_value)
            if not _is_tensor(_type(each)):
                if value is not None:
                    attributes[each.name] = _plain(value, node.name, each.name)
            elif isinstance(value, (list, tuple)):
                inputs += value
            else:
                inputs.append(value)
        while inputs and inputs[-1] is None:
            inputs.pop()
        schema = _schema(node, len(inputs), attributes)
        return Op(opset, node.operator, schema)(*inputs, **attributes)

    return write


def _schema(node: OpaqueNode, inputs: int, attributes: Mapping[str, Any]) -> Any:
    """ONNX's schema of one call: every input and output of any type."""
    from onnx.defs import OpSchema

    kinds = {
        each.name: _KINDS[_type(each)][0] for each in node.arguments if each.name in attributes
    }
    tensors = sorted(runtime_types())
    formal = OpSchema.FormalParameter
    optional = OpSchema.FormalParameterOption.Optional
    return OpSchema(
        node.operator,
        node.domain,
        node.version,
        inputs=[formal(f"x{n}", f"T{n}", param_option=optional) for n in range(inputs)],
        outputs=[formal(f"y{n}", f"R{n}") for n in range(node.outputs)],
        type_constraints=[
            *((f"T{n}", tensors, "") for n in range(inputs)),
            *((f"R{n}", tensors, "") for n in range(node.outputs)),
        ],
        attributes=[
            OpSchema.Attribute(name, getattr(OpSchema.AttrType, kind), required=False)
            for name, kind in kinds.items()
        ],
    )


def _plain(value: Any, operator: str, name: str) -> Any:
    """A constant argument as ONNX has it.

    Raises:
        NotImplementedError: It is computed from tensors or sizes of axes.
    """
    if isinstance(value, (list, tuple)):
        return [_plain(each, operator, name) for each in value]
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, (int, float, str)):
        raise NotImplementedError(
            f"'{operator}' gets `{name}` computed from a tensor or an axis, and attributes are constants: "
            "give it a tensor"
        )
    return value


@contextlib.contextmanager
def torchscript_nodes(nodes: Sequence[OpaqueNode], opset: int) -> Iterator[None]:
    """Register functions that write the nodes with the torchscript exporter, for as long as needed.

    Args:
        opset: What is exported to.
    """
    from torch.onnx import register_custom_op_symbolic, unregister_custom_op_symbolic

    names = [each.name.partition(".")[0] for each in nodes]
    for name, node in zip(names, nodes, strict=True):
        register_custom_op_symbolic(name, _symbolic(node), opset)
    try:
        yield
    finally:
        for name in names:
            unregister_custom_op_symbolic(name, opset)


def _symbolic(node: OpaqueNode) -> Callable[..., Any]:
    from torch.onnx import symbolic_helper

    def write(g: Any, *given: Any) -> Any:
        inputs: list[Any] = []
        attributes: dict[str, Any] = {}
        for each, value in zip(node.arguments, given, strict=False):
            shown = _type(each)
            is_none = symbolic_helper._is_none(value)  # noqa: SLF001 - torch's own symbolics use it
            if shown == "List[Tensor]":
                inputs += symbolic_helper._unpack_list(value)  # noqa: SLF001 - as above
            elif _is_tensor(shown):
                inputs.append(None if is_none else value)
            elif not is_none:
                form = _KINDS[shown][1]
                plain = symbolic_helper._get_const(value, form, each.name)  # noqa: SLF001 - as above
                suffix = {"b": "i", "is": "i", "fs": "f"}.get(form, form)
                attributes[f"{each.name}_{suffix}"] = int(plain) if form == "b" else plain
        while inputs and inputs[-1] is None:
            inputs.pop()
        inputs = [_absent(g) if each is None else each for each in inputs]
        return g.op(f"{node.domain}::{node.operator}", *inputs, outputs=node.outputs, **attributes)

    return write


def _absent(g: Any) -> Any:
    """The value of an optional input that is left out."""
    import torch

    value = g.op("prim::Constant")
    value.setType(torch.OptionalType.ofTensor())
    return value


def _type(argument: Any) -> str:
    """`Optional[float]` counts as `float`."""
    shown = str(argument.type)
    if shown.startswith("Optional["):
        shown = shown.removeprefix("Optional[").removesuffix("]")
    return {"number": "float", "SymInt": "int", "List[SymInt]": "List[int]"}.get(shown, shown)


def _is_tensor(shown: str) -> bool:
    return shown in {"Tensor", "List[Tensor]", "List[Optional[Tensor]]"}
