"""Operators of the user's: those that a recipe names, those with a `symbolic` method, and the error of one that no exporter knows."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import REPORT_FILE, StepContext
from onnxbuild.onnxkit.data.user_code import an, call_entrypoint
from onnxbuild.onnxkit.operators.opaque_nodes import OpaqueNode, opaque_nodes
from onnxbuild.onnxkit.sessions.custom_operators import NODES_INPUT

_PYTORCH = frozenset(
    {
        "aten", "prim", "prims", "onnx", "quantized", "torchvision", "higher_order", "_operator", "math",
    }
)  # fmt: skip
"""Namespaces of operators that are PyTorch's own."""


def asked_nodes(context: StepContext) -> tuple[OpaqueNode, ...]:
    """Return the operators that become one node each; the model's module is loaded.

    Raises:
        StepError: PyTorch has no such operator, or it takes or gives what no node can.
    """
    if NODES_INPUT not in context.input_names:
        return ()
    nodes = json.loads((context.input(NODES_INPUT) / REPORT_FILE).read_bytes())
    return opaque_nodes(nodes, context.where)


def read_translations(context: StepContext, entrypoint: Entrypoint | None) -> Mapping[Any, Any]:
    """Call the user's callable; return PyTorch operator -> onnxscript function.

    Args:
        entrypoint: None where the recipe names none.

    Raises:
        StepError: It raises, or returns something else.
    """
    if entrypoint is None:
        return {}
    make = context.load(entrypoint)
    table = call_entrypoint(make, entrypoint, context.where, owner="the translations'")
    if not isinstance(table, Mapping):
        raise StepError(
            f"{entrypoint.target} returned {an(table)}; expected a mapping of "
            "PyTorch operator -> onnxscript function",
            where=context.where,
            fix="return {torch.ops.NAMESPACE.OPERATOR.default: FUNCTION}",
        )
    for operator, function in table.items():
        if not callable(function):
            raise StepError(
                f"{entrypoint.target} returned {an(function)} for '{operator}'; expected an onnxscript function",
                where=context.where,
                fix=f"return {{torch.ops.{operator}: FUNCTION}}",
            )
    return table


def symbolic_functions(forward: Callable[[], object]) -> tuple[str, ...]:
    """Names of the torch.autograd.Function classes with a `symbolic` that forward applies, sorted.

    Only the torchscript exporter calls `symbolic`; dynamo takes apart what `forward` does. Calls of
    `apply` are seen by the interpreter's profiling hook: models keep it under other names
    (`swish = Swish.apply`), where a replaced `apply` would never be called.

    Args:
        forward: Runs the module once.
    """
    import torch

    if not any(hasattr(each, "symbolic") for each in _below(torch.autograd.Function)):
        return ()  # as nearly always: forward need not run once more
    apply = torch.autograd.Function.apply.__func__.__code__
    found: set[str] = set()

    def watch(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code is apply:
            function = frame.f_locals["cls"]
            if hasattr(function, "symbolic"):
                found.add(function.__name__)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        forward()
    finally:
        sys.setprofile(before)
    return tuple(sorted(found))


def _below(kind: type) -> Iterator[type]:
    below: list[type] = kind.__subclasses__()
    for each in below:
        yield each
        yield from _below(each)


class CustomOperatorError(StepError):
    """An exporter does not know an operator that the user defined."""


def is_custom(operator: str) -> bool:
    """Return whether an operator is of none of PyTorch's namespaces.

    Args:
        operator: `aten::mul` of the torchscript exporter, `aten.mul` of dynamo.
    """
    return operator.partition("::")[0].partition(".")[0] not in _PYTORCH


def custom_operator_error(operator: str, exporter: str, where: str) -> CustomOperatorError:
    """Return the error of an operator that the user defined.

    Args:
        operator: As the exporter names it, with its overload or without.
        exporter: Whose error it is.
        where: The user's line, or `recipe:step`.
    """
    spelled = operator if "::" in operator else operator.replace(".", "::", 1)
    name, _, overload = spelled.partition(".")
    function = f"torch.ops.{name.replace('::', '.')}.{overload or 'default'}"
    return CustomOperatorError(
        f"the {exporter} exporter can't translate your operator '{name}' to ONNX",
        where=where,
        fix=f"write it in ONNX's own operators: `export: {{translations: FILE.py:CALLABLE}}`, which returns "
        f"{{{function}: FUNCTION}}; or keep it as a node of a library of yours: `operators: {{libraries: "
        f'[PATH], nodes: {{"{name}": "DOMAIN::NAME"}}}}` (docs/operators.md)',
    )
