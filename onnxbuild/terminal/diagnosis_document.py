"""A diagnosis as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from onnxbuild.diagnosis.advice import advice
from onnxbuild.terminal.diagnosis_tables import decibels, first_below, stage_decibels

if TYPE_CHECKING:
    from onnxbuild.diagnosis.diagnose import Diagnosis


def diagnosis_document(found: Diagnosis, below: float) -> dict[str, object]:
    """Return a diagnosis as JSON; `output.diagnosis.DiagnosisRecord` describes it.

    Args:
        found: The diagnosis.
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
            }
            for each in found.nodes
        ],
        "trials": [
            {
                "what": each.remedy.what,
                "passed": each.passed,
                "cosine_min": each.cosine_min,
                "reached": each.reached or None,
                "size_bytes": each.size_bytes,
                "score": each.score,
            }
            for each in found.trials
        ],
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


def _finite(value: Mapping[str, object]) -> dict[str, object]:
    """JSON has no infinity: a bound that is open is None."""
    return {
        key: _finite(each) if isinstance(each, Mapping) else None if each == math.inf else each
        for key, each in value.items()
    }
