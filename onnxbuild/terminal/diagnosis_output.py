"""A diagnosis as tables and as JSON."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from onnxbuild.diagnosis.advice import advice
from onnxbuild.terminal.table import print_table, say

if TYPE_CHECKING:
    from onnxbuild.diagnosis.diagnose import Diagnosis
    from onnxbuild.diagnosis.trials import RemedyTrial
    from onnxbuild.onnxkit.accuracy.node_trace import NodeError, StageError


_PERCENT = 100


def show_stages(found: Diagnosis) -> None:
    """Print failing gates, each step's part in the error, and the first step at fault."""
    from onnxbuild.expansion.variants import flow, written_variant

    say("")
    if found.trial:
        say(
            f"'{found.chain.variant}' is looked at as its trial '{found.trial}', written out and "
            f"judged as {flow(written_variant(found.recipe, found.variant))}"
        )
    for gate, what in found.breaches:
        say(f"{gate} fails: {what}")
    if not found.breaches:
        say("every gate passes")
    if found.goal is not None and found.standing is not None:
        met = f"is met: {found.standing.reached}, asked was {found.goal.written}"
        say(
            f"the goal of the search {f'is missed: {found.standing.why}' if found.misses_goal else met}"
        )
    if found.runtime:
        say(f"looked at on {found.runtime}")
    rows = [
        {
            "step": stage.step if stage.kind else "whole variant",
            "against": stage.against,
            "max abs": f"{stage.error.max_abs:.2e}" if stage.error.has_floats else "-",
            "cosine": f"{stage.error.cosine_min:.6f}" if stage.error.has_floats else "-",
            "equal": "-" if stage.error.equal_min is None else f"{stage.error.equal_min:.4f}",
            "SQNR dB": stage_decibels(stage.error),
            "share": f"{stage.share:.0%}" if stage.share <= 1 else ">100%",
        }
        for stage in found.stages
    ]
    if all(row["equal"] == "-" for row in rows):
        for row in rows:
            del row["equal"]
    say("")
    print_table(rows)
    for stage in found.stages[:-1]:
        if stage.error.lost:
            say(f"{stage.step}: {stage.error.lost}")
    say("")
    total = found.stages[-1].error
    if found.fault is None and not total.has_elements and not total.lost:
        say("the outputs have no element at any point: there is no error to look for")
    elif found.fault is None:
        say("the outputs have no error to look for")
    else:
        stage = found.stages[found.fault]
        opened = ", as ONNX Runtime optimizes it" if found.is_of_the_runtime else ""
        say(f"first step where the error appears: {stage.step} ({stage.kind}){opened}")


def show_nodes(found: Diagnosis, shown: int, below: float) -> None:
    """Print the nodes that add most of the error, and the first that is far off.

    Args:
        shown: How many nodes at most.
        below: In dB: what counts as far off.
    """
    from onnxbuild.diagnosis.remedies import effect_of

    if not found.nodes:
        return
    by_effect, costs = any(found.effects.values()), found.node_costs.of

    def rank(each: NodeError) -> tuple[float, float]:
        cost = costs.get(each.name, 0.0)
        return cost, effect_of(each, found.effects) if by_effect else each.added

    worst = heapq.nlargest(shown, found.nodes, key=rank)
    rows = [
        {
            "node": each.name,
            "operator": each.op_type,
            "in dB": decibels(each.before),
            "out dB": each.lost or decibels(each.after),
            "cosine": "-" if each.lost else f"{each.cosine:.6f}",
            "added": _percent(each.added),
            "alone": _percent(found.effects.get(each.name, 0.0)),
            **(
                {"cost": f"{costs[each.name]:.3g}" if each.name in costs else "-"} if costs else {}
            ),
        }
        for each in worst
        if each.added > 0 or each.name in found.effects
    ]
    say(
        f"nodes that add most of the error, of {len(found.nodes)} compared at "
        f"{', '.join(found.points) or 'every point'}:"
    )
    say("")
    print_table(rows)
    say("")
    if costs:
        say(f"cost: {cost_in_words(found.node_costs.ranked_by)}, if only this node is in few bits")
    holding = [each for each in found.nodes if each.bodies]
    if holding:
        names = ", ".join(f"{each.name} ({each.op_type})" for each in holding)
        say(
            f"{sum(each.bodies for each in holding)} nodes are in bodies, whose values can't be "
            f"compared one by one; what runs them stands for them: {names}"
        )
    first = first_below(found, below)
    if first is None:
        say(f"no node's output is below {below:g} dB")
    elif first.lost:
        say(f"first node with values lost: {first.name} ({first.op_type}): {first.lost}")
        if not any(stage.error.lost for stage in found.stages):
            say(
                f"  ('{found.chain.target.name}' fuses it away and computes it in fp32; where fp16 is "
                "computed as it is written, the outputs are lost)"
            )
    else:
        say(
            f"first node below {below:g} dB: {first.name} ({first.op_type}), "
            f"{decibels(first.before)} -> {decibels(first.after)} dB"
        )
        if first.behind:
            say(
                f"  (it stands for {', '.join(first.behind)}, too, whose own values the other model "
                f"has not; that one makes it with {first.now})"
            )


def first_below(found: Diagnosis, below: float) -> NodeError | None:
    """Lost values come first: what is after them says nothing."""
    lost = next((each for each in found.nodes if each.lost), None)
    return lost or next((each for each in found.nodes if each.after_db < below), None)


def cost_in_words(ranked_by: str) -> str:
    """Return what a node's cost is, as a report of sensitivity names it."""
    named = {"kl": "KL divergence of the next token, nats", "sqnr_db": "noise to signal"}
    named["cosine_mean"] = "1 - mean cosine"
    return named.get(ranked_by, f"drop of {ranked_by}")


def stage_decibels(error: StageError) -> str:
    """`decibels` of a step's error; `-` where no element was compared."""
    return decibels(error.ratio) if error.has_elements or error.lost else "-"


def decibels(ratio: float) -> str:
    """Noise to signal as `23.4`, in dB; `exact` without noise, `lost` where it is infinite."""
    if math.isinf(ratio):
        return "lost"
    return "exact" if ratio == 0.0 else f"{-10.0 * math.log10(ratio):.1f}"


def _percent(ratio: float) -> str:
    if math.isinf(ratio):
        return "lost"
    return f"{ratio * _PERCENT:.3g}%" if ratio > 0 else "-"


def diagnosis_document(found: Diagnosis, below: float) -> dict[str, object]:
    """Return a diagnosis as JSON; `output.diagnosis.DiagnosisRecord` describes it.

    Args:
        below: In dB: the first node below is named.
    """
    first = first_below(found, below)
    return {
        "variant": f"{found.chain.recipe}:{found.chain.variant}",
        "trial": found.trial or None,
        "target": found.chain.target.name,
        "runtime": found.runtime or None,
        "failing": [{"gate": gate, "what": what} for gate, what in found.breaches],
        "stages": [
            {
                "step": stage.step,
                "against": stage.against,
                "max_abs": stage.error.max_abs if stage.error.has_floats else None,
                "cosine_min": stage.error.cosine_min if stage.error.has_floats else None,
                "equal_min": stage.error.equal_min,
                "sqnr": stage_decibels(stage.error),
                "share": stage.share,
                "lost": stage.error.lost,
            }
            for stage in found.stages
        ],
        "fault": None if found.fault is None else found.stages[found.fault].step,
        "first_below": None if first is None else first.name,
        "nodes": [
            {
                "name": each.name,
                "op_type": each.op_type,
                "in_db": decibels(each.before),
                "out_db": decibels(each.after),
                "cosine": each.cosine,
                "lost": each.lost,
                "behind": list(each.behind),
                "now": each.now,
                "body_nodes": each.bodies,
                "changed_in_bodies": list(each.inside),
                "cost": found.node_costs.of.get(each.name),
            }
            for each in found.nodes
        ],
        "ranked_by": found.node_costs.ranked_by or None,
        "trials": trial_records(found.trials),
        "goal": None
        if found.goal is None or found.standing is None
        else {
            "asked": found.goal.written,
            "reached": found.standing.reached,
            "missed": found.standing.why,
        },
        "cost": None if found.cost is None else _finite(asdict(found.cost)),
        "yaml": advice(found),
    }


def trial_records(trials: Sequence[RemedyTrial]) -> list[dict[str, object]]:
    """Return remedies that were tried as JSON; `output.diagnosis.RemedyRecord` describes it."""
    return [
        {
            "what": each.remedy.what,
            "passed": each.passed,
            "cosine_min": each.cosine_min,
            "reached": each.reached or None,
            "size_bytes": each.size_bytes,
            "score": each.score,
        }
        for each in trials
    ]


def _finite(value: Mapping[str, object]) -> dict[str, object]:
    """JSON has no infinity: a bound that is open is None."""
    return {
        key: _finite(each) if isinstance(each, Mapping) else None if each == math.inf else each
        for key, each in value.items()
    }
