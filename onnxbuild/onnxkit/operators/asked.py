"""PyTorch operators that a recipe names: `operators.nodes` and `export.translations`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.core.step import REPORT_FILE, StepContext
from onnxbuild.onnxkit.data.user_code import an, call_entrypoint
from onnxbuild.onnxkit.operators.opaque_nodes import OpaqueNode, opaque_nodes
from onnxbuild.onnxkit.sessions.custom_operators import NODES_INPUT


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
        context: The step's.
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
