"""Nodes and operator types that a recipe names, by name or pattern: each must be there."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.onnxkit.graphs import all_nodes

if TYPE_CHECKING:
    import onnx

_SHOWN = 8
_MAGIC = re.compile(r"[*?[]")


def select_nodes(
    patterns: Iterable[str], model: onnx.ModelProto, *, option: str, where: str
) -> tuple[str, ...]:
    """The names of the nodes that are meant, in the graph's order.

    Args:
        patterns: Names of nodes, or patterns: `*` stands for any characters, `?` for one, `[ab]`
            for one of some. What is a node's name is that node, whatever characters it has.
        model: Whose nodes, those of subgraphs included.
        option: The key in the recipe, for messages.
        where: `recipe:step`.

    Raises:
        StepError: A name is no node's, or a pattern matches none.
    """
    known = [node.name for node in all_nodes(model)]
    chosen: set[str] = set()
    for pattern in patterns:
        if pattern in known or not _MAGIC.search(pattern):
            _check([pattern], known, thing="node", option=option, where=where)
            chosen.add(pattern)
            continue
        matches = re.compile(fnmatch.translate(pattern)).match
        found = {name for name in known if matches(name)}
        if not found:
            raise StepError(
                f"the pattern '{pattern}' in `{option}` matches none of the graph's "
                f"{len(known)} nodes; it has {_listed(known)}",
                where=where,
                fix=f"write a pattern that matches their names, or leave '{pattern}' out of "
                f"`{option}`",
            )
        chosen |= found
    return tuple(dict.fromkeys(name for name in known if name in chosen))


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
        raise StepError(
            f"`{option}` names the {thing} '{name}', which the graph does not have; "
            f"it has {_listed(known)}",
            where=where,
            fix=did_you_mean(name, known) or f"leave '{name}' out of `{option}`",
        )


def _listed(known: list[str]) -> str:
    return ", ".join(known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "") or "none"
