"""A comparison as JSON, and the schema of it."""

from __future__ import annotations

from typing import Any

from onnxbuild.comparison.compare import GROUPS, ComparedSides
from onnxbuild.comparison.sides import Side

FORMAT = 1  # increment when a key changes its meaning

_TEXT, _NUMBER = {"type": "string"}, {"type": ["number", "null"]}
_TIME = {"type": "array", "items": {"type": "number"}, "minItems": 3, "maxItems": 3}


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": sorted(properties),
        "properties": properties,
    }


_SIDE = _object(
    given=_TEXT,
    kind={"enum": ["model", "build", "folder", "release", "commit"]},
    title=_TEXT,
    bundles={"type": "array", "items": _TEXT},
)
SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "onnxbuild diff --json",
    **_object(
        format={"const": FORMAT},
        equal={"type": "boolean"},
        before=_SIDE,
        after=_SIDE,
        differences={
            "type": "array",
            "items": _object(
                group={"enum": list(GROUPS)},
                sentence=_TEXT,
                variants={"type": "array", "items": _TEXT},
                data={"type": "object", "required": ["kind"], "properties": {"kind": _TEXT}},
            ),
        },
        latencies={
            "type": "array",
            "items": _object(
                variant=_TEXT,
                provider=_TEXT,
                point=_TEXT,
                sentence=_TEXT,
                differs={"type": "boolean"},
                before_ms=_TIME,
                after_ms=_TIME,
                speedup={"type": ["array", "null"], "items": _NUMBER},
            ),
        },
        notes={"type": "array", "items": _TEXT},
    ),
}


def as_json(found: ComparedSides) -> dict[str, Any]:
    """Return a comparison as SCHEMA has it."""
    return {
        "format": FORMAT,
        "equal": found.equal,
        "before": _side(found.before),
        "after": _side(found.after),
        "differences": [
            {
                "group": each.group,
                "sentence": each.sentence,
                "variants": list(each.variants),
                "data": each.data,
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


def _side(side: Side) -> dict[str, Any]:
    return {
        "given": side.given,
        "kind": side.kind,
        "title": side.title,
        "bundles": [
            f"{each.recipe}:{each.name}" if each.recipe else each.name for each in side.bundles
        ],
    }
