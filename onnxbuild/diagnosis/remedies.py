"""What may mend a variant, as settings to build it with and as YAML to paste."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.graph import Step
from onnxbuild.onnxkit.tracing import NodeError

_LIST_OF_KIND: Mapping[str, tuple[str, str]] = {
    "quantize-dynamic": ("dynamic", "nodes_to_exclude"),
    "quantize-static": ("static", "nodes_to_exclude"),
    "quantize-weights": ("weight_only", "nodes_to_exclude"),
    "convert-fp16": ("fp16", "node_block_list"),
}
"""Kind of a step -> the mode it stands for, and the option that keeps nodes in fp32."""

_FP16_LARGEST = 65504.0
_LEVELS = (("transformer", "false"), ("level", "basic"), ("level", "none"))
"""Of `optimize`, each doing less than the one before."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change of the recipe.

    Attributes:
        what: It, in words.
        settings: As `--set` takes them: dotted key -> YAML.
        short: The same for a variant that is written as its mode alone.
        yaml: Lines to paste.
        nodes: That stay in fp32; those that did before included.
    """

    what: str
    settings: Mapping[str, str]
    short: Mapping[str, str]
    yaml: tuple[str, ...]
    nodes: tuple[str, ...] = ()


def keeps_nodes(kind: str) -> bool:
    """Whether a step of this kind can leave single nodes in fp32."""
    return kind in _LIST_OF_KIND


def suspects(
    kind: str, nodes: Sequence[NodeError], effects: Mapping[str, float]
) -> tuple[tuple[str, ...], ...]:
    """The nodes to leave in fp32, worst first; those that only help together are one group.

    Args:
        kind: Of the step at fault.
        nodes: The trace between its input and its output.
        effects: Node -> what it alone does to the outputs, as far as known.
    """
    groups: list[tuple[str, ...]] = []
    if kind == "convert-fp16":
        beyond = tuple(
            each.name
            for each in nodes
            if each.largest > _FP16_LARGEST or (each.lost and math.isfinite(each.before))
        )
        groups += [beyond] if beyond else []
    taken = {name for group in groups for name in group}
    ranked = sorted(
        (each for each in nodes if each.changed and each.name not in taken),
        key=lambda each: (-effects.get(each.name, 0.0), -each.added),
    )
    return (*groups, *((*each.behind, each.name) for each in ranked))


def keep_in_fp32(step: Step, variant: str, names: Sequence[str]) -> Remedy:
    """Leave nodes in fp32, beside those that the recipe leaves there.

    Args:
        step: The one at fault.
        variant: Whose it is.
        names: The nodes.
    """
    params: Any = step.params
    mode, option = _LIST_OF_KIND[step.kind]
    nodes = tuple(dict.fromkeys([*getattr(params.options, option), *names]))
    listed = json.dumps(nodes)
    count = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    return Remedy(
        what=f"{count} in fp32",
        settings={f"quantization.{variant}.{option}": listed},
        short={f"quantization.{variant}": f"{{mode: {mode}, {option}: {listed}}}"},
        yaml=(
            "quantization:",
            f"  {variant}:",
            f"    mode: {mode}",
            f"    {option}:",
            *(f"      - {json.dumps(name)}" for name in nodes),
        ),
        nodes=nodes,
    )


def optimize_less(step: Step, variant: str) -> tuple[Remedy, ...]:
    """Do less in `optimize`, by degrees."""
    own = f"{variant}/" in step.name
    key = f"quantization.{variant}.optimize" if own else "optimize"
    params: Any = step.params
    now = {name: str(getattr(params.options, name)).lower() for name in ("transformer", "level")}
    indent = "    " if own else ""
    head = ("quantization:", f"  {variant}:") if own else ()
    return tuple(
        Remedy(
            what=f"optimize: {{{option}: {value}}}",
            settings={f"{key}.{option}": value},
            short={f"{key}.{option}": value},
            yaml=(*head, f"{indent}optimize: {{{option}: {value}}}"),
        )
        for option, value in _LEVELS
        if now[option] != value
    )
