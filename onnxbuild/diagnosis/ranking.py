"""Rank the nodes to leave in fp32, by their loss on the user's own data."""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnxbuild.building.api import Request, build, graph_of
from onnxbuild.building.wiring import RunOptions
from onnxbuild.catalog import MODES, all_features
from onnxbuild.core.ports import EventSink
from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.core.step import REPORT_FILE
from onnxbuild.diagnosis.artifact_folders import artifacts_shown
from onnxbuild.onnxkit.accuracy.sample_outputs import noise_of


def measured_losses(
    request: Request,
    recipe: Recipe,
    variant: Variant,
    options: RunOptions,
    events: Sequence[EventSink],
) -> Mapping[str, float]:
    """Return node -> what 8 bits in it alone cost, by the variant's table of sensitive nodes.

    The table is a cached step; a variant that keeps its most sensitive nodes has it already.

    Args:
        request: The variant's recipe.
        recipe: It, parsed.
        variant: The variant; of a search, as the trial that it is.
        options: How to use the machine.
        events: Receives the events of the build.

    Returns: Empty where there is no such table: the mode has none, or it can't be made.
    """
    hints = (each.diagnosis.losses for each in all_features())
    losses = next((each for each in hints if each is not None), None)
    if (
        losses is None
        or losses.data not in recipe.entrypoints
        or MODES[variant.mode].sensitivity is None
    ):
        return {}
    settings = {**(request.settings or {}), **losses.settings}
    asked = replace(request, settings=settings, only=())
    graph = graph_of(asked)
    own = (recipe.name, variant.name)
    parts = next(each.parts for each in graph.deliverables if (each.recipe, each.name) == own)
    steps = (ref.step for ref, _ in parts)
    table = next((name for name in steps if graph.steps[name].kind == losses.kind), "")
    if not table:
        return {}
    result = build(replace(asked, only=(table,)), options, events, lay=False)
    with artifacts_shown(asked, result, [table]) as folders:
        if table not in folders:
            return {}
        report = json.loads((folders[table] / REPORT_FILE).read_text("utf-8"))
    rows = [node for node in report["nodes"] if node["measured"]]
    by_noise = report["ranked_by"] == "sqnr_db"
    return {node["name"]: _loss(node, by_noise=by_noise) for node in rows}


def by_loss(
    groups: Sequence[tuple[str, ...]],
    losses: Mapping[str, float],
    effects: Mapping[str, float],
) -> tuple[tuple[str, ...], ...]:
    """Groups of nodes in the order of what they cost; those without a number come last, as they are.

    The table says nothing of nodes such as LSTM. What such a node does to the outputs of a reference
    input is taken for its cost, in the table's unit by the median of the nodes that have both.

    Args:
        groups: Worst first by another measure.
        losses: Node -> its cost.
        effects: Node -> what it alone does to the outputs, in any unit.
    """
    both = [losses[name] / effects[name] for name in losses if effects.get(name, 0.0) > 0.0]
    unit = statistics.median(both) if both else 0.0
    costs = {
        **({name: unit * each for name, each in effects.items()} if unit > 0 else {}),
        **losses,
    }

    def cost(group: tuple[str, ...]) -> float:
        return max((costs[name] for name in group if name in costs), default=-float("inf"))

    return tuple(sorted(groups, key=cost, reverse=True))


def _loss(node: Mapping[str, float], *, by_noise: bool) -> float:
    if by_noise:
        return noise_of(node["sqnr_db"])
    drop = node.get("drop")
    return float(drop) if drop is not None else 1.0 - float(node["cosine_mean"])
