"""What may mend a variant, as settings to build it with and as YAML to paste."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxbuild.core.graph import Step
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.diagnosis.variant_yaml import (
    Written,
    flow,
    written_options,
    written_variant,
    yaml_lines,
)
from onnxbuild.onnxkit.accuracy.node_trace import NodeError

_LIST_OF_KIND: Mapping[str, str] = {
    "quantize-dynamic": "nodes_to_exclude",
    "quantize-static": "nodes_to_exclude",
    "quantize-weights": "nodes_to_exclude",
    "convert-fp16": "node_block_list",
}
"""Kind of a step -> the option that keeps nodes in fp32."""

_FP16_LARGEST = 65504.0
_LESS: tuple[dict[str, Any], ...] = (
    {"num_heads": 0, "hidden_size": 0},
    {"transformer": False},
    {"transformer": False, "level": "basic"},
    {"transformer": False, "level": "none"},
)
"""Of `optimize`, each doing less than the one before; the first drops options that may be wrong."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change of the recipe.

    Attributes:
        what: It, in words.
        settings: As `--set` takes them: dotted key -> YAML; what they set, they set as a whole.
        yaml: Lines to paste.
        nodes: That stay in fp32; those that did before included.
    """

    what: str
    settings: Mapping[str, str]
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
        key=lambda each: (-effect_of(each, effects), -each.added),
    )
    return (*groups, *((*each.behind, *each.inside, each.name) for each in ranked))


def effect_of(each: NodeError, effects: Mapping[str, float]) -> float:
    """What a node alone does to the outputs; the noise added at it, if the former is unknown.

    That is so for nodes that can't be run by themselves, such as a Loop, which counts in integers.
    """
    return effects.get(each.name, max(each.added, 0.0) if each.changed else 0.0)


def keep_in_fp32(recipe: Recipe, variant: Variant, step: Step, names: Sequence[str]) -> Remedy:
    """Leave nodes in fp32, besides those that the recipe leaves there.

    Args:
        recipe: The variant's.
        variant: Whose error it is.
        step: The one at fault.
        names: The nodes.
    """
    params: Any = step.params
    option = _LIST_OF_KIND[step.kind]
    nodes = tuple(dict.fromkeys([*getattr(params.options, option), *names]))
    count = "1 node" if len(nodes) == 1 else f"{len(nodes)} nodes"
    written = {**written_variant(recipe, variant), option: list(nodes)}
    return _of_variant(variant, f"{count} in fp32", written, nodes)


def optimize_less(recipe: Recipe, variant: Variant) -> tuple[Remedy, ...]:
    """Do less in `optimize`, by degrees; the user's own options about heads are dropped first.

    Args:
        recipe: The variant's.
        variant: Whose error it is.
    """
    own = "optimize" in variant.sections
    options: Any = variant.sections["optimize"] if own else recipe.sections["optimize"]
    below: Any = recipe.sections["optimize"] if own else None
    found = []
    for changes in _LESS:
        less = dataclasses.replace(options, **changes)
        if less == options:
            continue
        what = f"optimize: {flow(changes)}"
        written = written_options(less, below)
        if own:
            whole = {**written_variant(recipe, variant), "optimize": written}
            found.append(_of_variant(variant, what, whole))
        else:
            yaml = f"optimize: {flow(written)}"
            found.append(Remedy(what, {"optimize": json.dumps(written)}, (yaml,)))
    return tuple(found)


def as_setting(recipe: Recipe, variant: Variant) -> str:
    """A variant as `--set quantization.NAME=` takes it."""
    return json.dumps(written_variant(recipe, variant))


def _of_variant(
    variant: Variant, what: str, written: Written, nodes: tuple[str, ...] = ()
) -> Remedy:
    return Remedy(
        what=what,
        settings={f"quantization.{variant.name}": json.dumps(written)},
        yaml=("quantization:", f"  {variant.name}:", *yaml_lines(written, 4)),
        nodes=nodes,
    )
