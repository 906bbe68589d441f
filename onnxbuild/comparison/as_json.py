"""A comparison as JSON."""

from __future__ import annotations

from onnxbuild.comparison.compare import ComparedSides
from onnxbuild.comparison.sides import Side
from onnxbuild.output.pages import DiffRecord, SideRecord


def as_json(found: ComparedSides) -> DiffRecord:
    """Return a comparison as `diff --json` prints it."""
    return {
        "type": "diff",
        "equal": found.equal,
        "before": _side(found.before),
        "after": _side(found.after),
        "differences": [
            {
                "group": each.group.value,
                "sentence": each.sentence,
                "variants": list(each.variants),
                "data": each.data,
                "data_by_variant": each.data_by_variant,
            }
            for each in found.differences
        ],
        "latencies": [
            {
                "variant": each.variant,
                "provider": each.provider,
                "point": each.point,
                "sentence": each.sentence,
                "differs": each.known,
                "before_ms": list(each.before),
                "after_ms": list(each.after),
                "speedup": None if each.speedup is None else list(each.speedup),
            }
            for each in found.latencies
        ],
        "notes": list(found.notes),
    }


def _side(side: Side) -> SideRecord:
    return {
        "given": side.given,
        "kind": side.kind,
        "title": side.title,
        "bundles": [
            f"{each.recipe}:{each.name}" if each.recipe else each.name for each in side.bundles
        ],
    }
