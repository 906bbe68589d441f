"""Nodes and operator types that a recipe names, by name or pattern: each must be there."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from onnxbuild.core.errors import StepError, did_you_mean
from onnxbuild.onnxkit.model.graphs import all_nodes

if TYPE_CHECKING:
    import onnx

NODES_OPTION = "nodes_to_exclude"
"""The option of a mode that lists the nodes to leave in fp32."""

_SHOWN = 8
_MAGIC = re.compile(r"[*?[]")
_NEAR = 0.5
"""Least similarity of a suggested word, 0 to 1: `attention` and `attn` have 0.62."""


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
        found = _matches(pattern, known)
        if not found:
            raise StepError(
                f"the pattern '{pattern}' in `{option}` matches none of the graph's "
                f"{len(known)} nodes; it has {_listed(_nearest(pattern, known))}",
                where=where,
                fix=_near_pattern(pattern, known)
                or f"write a pattern that matches their names, or leave '{pattern}' out of "
                f"`{option}`",
            )
        chosen |= found
    return tuple(dict.fromkeys(name for name in known if name in chosen))


def check_op_types(
    names: Iterable[str], model: onnx.ModelProto, *, option: str, where: str
) -> None:
    """Check that every name is an operator type that the graph has.

    Raises:
        StepError: One is not.
    """
    known = sorted({node.op_type for node in all_nodes(model)})
    _check(names, known, thing="operator type", option=option, where=where)


def check_supported(
    names: Iterable[str], supported: Collection[str], *, option: str, where: str
) -> None:
    """Check that every operator type can be quantized at all.

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


def _matches(pattern: str, known: Iterable[str]) -> set[str]:
    matches = re.compile(fnmatch.translate(pattern)).match
    return {name for name in known if matches(name)}


def _near_pattern(pattern: str, known: Sequence[str]) -> str:
    """`did you mean '*/attn/*', which matches 6 nodes?`: a word or two exchanged; or empty.

    Words are what stands between slashes, dots, underscores and wildcards; then, with the
    underscores in them.
    """
    for cut in (r"([*?/._]+)", r"([*?/.]+)"):
        words = {word for name in known for word in re.split(cut, name)[::2] if word}
        parts = re.split(cut, pattern)
        for n, word in enumerate(parts):
            if n % 2 == 0 and word and word not in words and "[" not in word:
                parts[n] = next(iter(difflib.get_close_matches(word, words, 1, _NEAR)), word)
        found = _matches("".join(parts), known)
        if found:
            count = "1 node" if len(found) == 1 else f"{len(found)} nodes"
            return f"did you mean '{''.join(parts)}', which matches {count}?"
    return ""


def _nearest(pattern: str, known: Sequence[str]) -> list[str]:
    """The names, the likest to the pattern first; of those alike, in the graph's order."""
    text = _MAGIC.sub("", pattern).lower()
    compared = difflib.SequenceMatcher(b=text, autojunk=False)

    def unlike(name: str) -> float:
        compared.set_seq1(name.lower())
        return -compared.ratio()

    return sorted(known, key=unlike)


def _check(names: Iterable[str], known: list[str], *, thing: str, option: str, where: str) -> None:
    for name in names:
        if name in known:
            continue
        raise StepError(
            f"`{option}` names the {thing} '{name}', which the graph does not have; "
            f"it has {_listed(known if len(known) <= _SHOWN else _nearest(name, known))}",
            where=where,
            fix=did_you_mean(name, known) or f"leave '{name}' out of `{option}`",
        )


def _listed(known: list[str]) -> str:
    return ", ".join(known[:_SHOWN]) + (", ..." if len(known) > _SHOWN else "") or "none"
