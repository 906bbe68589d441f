"""What `mode: auto` tries, the most promising first."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from onnxbuild.catalog import KIND_OF_MODE
from onnxbuild.core.recipe import DUMMY_DATA, Mode, Recipe, Variant
from onnxbuild.resolver.sections import typed
from onnxbuild.steps.choose import AutoOptions

_KEPT_SHARES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
"""Of the quantizable nodes, kept in fp32, the most sensitive first."""

_BALANCED_KEPT_SHARES = (0.05, 0.1, 0.2, 0.35)

_OTHER_METHODS = ("mse", "percentile")
"""Of calibration, besides the recipe's own. Entropy clips what transformers need, and did no better on
convolutions."""

_STATIC_KEPT_SHARES = (0.1, 0.3)

_BALANCED: dict[str, Any] = {"balance": True, "rounding": "gptq"}
"""On MiniLM as fast as plain 8 bits within 3 %, with a seventh of the error."""


def trials_of(recipe: Recipe, variant: Variant, options: AutoOptions) -> dict[str, Variant]:
    """Trial name -> the variant that it is, in the order in which a smaller budget cuts them off.

    Args:
        recipe: The variant's.
        variant: One with mode auto.
        options: Its options.
    """
    include = options.include or (
        ("dynamic", "static") if "calibration" in recipe.entrypoints else ("dynamic",)
    )
    found: dict[str, Variant] = {}
    calibration = recipe.entrypoints.get("calibration")
    ladder = _ladder(
        keeps="fidelity" in recipe.entrypoints,
        balances=calibration is not None and calibration.target != DUMMY_DATA,
    )
    method = typed(recipe.sections["calibration"]).method
    for name, mode, changes in ladder:
        kind = KIND_OF_MODE[mode]
        known = changes.get("calibration_method") == method
        if mode in include and not known and len(found) < options.trials and kind.options:
            made: Any = dataclasses.replace(kind.options(), **changes)
            trial = f"{variant.name}/{name}"
            found[name] = Variant(
                trial, mode, made, variant.sections, variant.location, search=variant.name
            )
    return found


def _ladder(*, keeps: bool, balances: bool) -> Iterator[tuple[str, Mode, dict[str, Any]]]:
    """(name, mode, options that are not the default)."""
    yield "int8-dynamic", "dynamic", {}
    if balances:
        yield "int8-balanced", "dynamic", _BALANCED
    yield "int8-static", "static", {}
    yield "weights-8", "weight_only", {"bits": 8}
    if balances:
        yield "int8-static-balanced", "static", {"balance": True}
    for method in _OTHER_METHODS:
        yield f"int8-static-{method}", "static", {"calibration_method": method}
    if keeps:
        for share in _STATIC_KEPT_SHARES:
            changes = {"keep_most_sensitive": share}
            yield f"int8-static-keep-{share:.0%}".rstrip("%"), "static", changes
    if keeps and balances:
        for share in _BALANCED_KEPT_SHARES:
            changes = {**_BALANCED, "keep_most_sensitive": share}
            yield f"int8-balanced-keep-{share:.0%}".rstrip("%"), "dynamic", changes
    if keeps:
        for share in _KEPT_SHARES:
            yield f"int8-keep-{share:.0%}".rstrip("%"), "dynamic", {"keep_most_sensitive": share}
    yield "int8-dynamic-per-tensor", "dynamic", {"per_channel": False}
    if balances:
        yield "weights-4-gptq", "weight_only", {"bits": 4, "method": "gptq"}
    yield "weights-4", "weight_only", {"bits": 4}
    yield "fp16", "fp16", {}


def written(variant: Variant) -> str:
    """A trial as YAML to paste: `{mode: dynamic, keep_most_sensitive: 0.1}`."""
    kind = KIND_OF_MODE[variant.mode]
    assert kind.options is not None
    default: Any = kind.options()
    parts = [f"mode: {variant.mode}"]
    for field in dataclasses.fields(default):
        value = getattr(variant.options, field.name)
        if value != getattr(default, field.name):
            parts.append(f"{field.name}: {str(value).lower() if value is True else value}")
    return f"{{{', '.join(parts)}}}"
