"""Nodes and operator types that a recipe names: all must be there, or the nearest is suggested."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.onnxkit.graphs import all_nodes

if TYPE_CHECKING:
    import onnx

_SHOWN = 8


def check_nodes(names: Iterable[str], model: onnx.ModelProto, *, option: str, where: str) -> None:
    """See that every name is a node's.

    Raises:
        StepError: One is not.
    """
    known = [node.name for node in all_nodes(model)]
    _check(names, known, thing="node", option=option, where=where)


def check_op_types(
    names: Iterable[str], model: onnx.ModelProto, *, option: str, where: str
) -> None:
    """See that every name is an operator type that the graph has.

    Raises:
        StepError: One is not.
    """
    known = sorted({node.op_type for node in all_nodes(model)})
    _check(names, known, thing="operator type", option=option, where=where)


def check_supported(
    names: Iterable[str], supported: Collection[str], *, option: str, where: str
) -> None:
    """See that every operator type can be quantized at all.

    Raises:
        StepError: One can't.
    """
    for name in names:
        if name not in supported:
            raise StepError(
                f"operator type '{name}' in `{option}` can't be quantized; expected some of "
                f"{', '.join(sorted(supported))}",
                where=where,
                fix=did_you_mean(name, supported) or f"leave '{name}' out of `{option}`",
            )


def _check(names: Iterable[str], known: list[str], *, thing: str, option: str, where: str) -> None:
    for name in names:
        if name in known:
            continue
        shown = ", ".join(known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "")
        raise StepError(
            f"`{option}` names the {thing} '{name}', which the graph does not have; "
            f"it has {shown or 'none'}",
            where=where,
            fix=did_you_mean(name, known) or f"leave '{name}' out of `{option}`",
        )
