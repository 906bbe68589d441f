"""Fixes for a model whose outputs are too far from the reference's: what to try, and which bound to change, where."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from onnxbuild.core.step import Finding
from onnxbuild.onnxkit.accuracy.output_parts import PART
from onnxbuild.onnxkit.accuracy.point_reports import JudgedPoint, comparisons
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances, bounds_of

NOISY = "noise"
"""The kind of breach of such an output, for fixes."""

_GREATEST_SHARE = 10 ** (-8.0 / 20)
"""Greatest error of an output, as a share of its norm: 8 dB, the least that 8 bits are judged by."""


def noisy_findings(
    judged: Sequence[JudgedPoint],
    tolerances: VariantTolerances,
    subject: str,
    fix: Callable[[str, str], str],
) -> tuple[Finding, ...]:
    """One for each float output whose error over all points is more than _GREATEST_SHARE of its values.

    An `atol` of 0.01 passes zeros in place of the probabilities of 1,000 classes, which are near 0.001.
    Norms are of all points together: the few elements of one point may all be near zero by chance.
    Outputs that have a `cosine_min` or an `sqnr_db_min` are judged by that, and those that the recipe gives
    bounds of their own by these alone. One that breaches a bound has its finding; zeros are left to `atol`.

    Args:
        judged: Judgements of all points.
        subject: Name of what is judged, such as `variant 'fp16'`.
        fix: (output, kind of breach) -> the fix to suggest.
    """
    breached = {name for _, _, found in judged for name, each in found.items() if each.breaches}
    norms: dict[str, tuple[float, float, int]] = {}
    for _, name, found in comparisons(judged):
        magnitude, error, elements = norms.get(name, (0.0, 0.0, 0))
        norms[name] = (
            math.hypot(magnitude, found.magnitude),
            math.hypot(error, found.error),
            elements + found.elements,
        )
    return tuple(
        Finding(
            _what(*norm, len(judged), bounds_of(tolerances, name).atol or 0.0),
            f"{subject}, output '{name}'",
            fix(name, NOISY),
        )
        for name, norm in norms.items()
        if name not in breached
        and _has_absolute_bound(name, tolerances)
        and 0.0 < norm[0] * _GREATEST_SHARE < norm[1]
    )


def _has_absolute_bound(name: str, tolerances: VariantTolerances) -> bool:
    """Return whether an output is judged by the variant's `atol` and by no measure of direction or noise."""
    bounds = bounds_of(tolerances, name)
    measured = bounds.cosine_min is not None or bounds.sqnr_db_min is not None
    return name not in tolerances.outputs and bool(bounds.atol) and not measured


def _what(magnitude: float, error: float, elements: int, points: int, atol: float) -> str:
    typical = magnitude / math.sqrt(elements)
    where = f" over all {points} points" if points > 1 else ""
    return (
        f"its error{where} is {error / magnitude:.0%} of its values, allowed {_GREATEST_SHARE:.0%}: they are "
        f"near {typical:.2g}, so small that atol {atol:g} does not show it"
    )


CONVERTER_FAULT = "fault"
"""Key of what a converter changed, in the report `config` of the step that converts."""

Fix = Callable[[str, str], str]
"""(output, kind of its breach) -> the fix."""

_BOUNDS: Mapping[str, tuple[str, str]] = {
    "tolerance": ("widen", "atol: ..., rtol: ..."),
    "cosine": ("lower", "cosine_min: ..."),
    "sqnr": ("lower", "sqnr_db_min: ..."),
    "equal": ("lower", "equal_min: ..."),
    NOISY: ("give the output bounds of its own:", "atol: ..., rtol: ..."),
}
"""Kind of breach -> the bound that was breached; no bound helps where outputs can't be compared."""

_EXCLUDED = "leave its most sensitive nodes in fp32 (`nodes_to_exclude: [...]`)"

_OPTIONS: Mapping[str, str] = {
    "keep_fp32": "keep in fp32 what needs its range: `keep_fp32: auto` in the variant (or the nodes that "
    "you know of: `node_block_list: [...]`)",
    "goal": "ask for more in its `goal`",
    "per_channel": "see that the variant keeps `per_channel: true`",
    "block_size": "write a smaller `block_size` or another `method`",
    "nodes_to_exclude": _EXCLUDED,
}
"""Option of a variant -> what to try with it."""

_LOST: Mapping[str, str] = {
    "keep_fp32": "keep in fp32 the nodes that make it (`node_block_list: [...]`)",
    "only_products": "quantize only what multiplies with weights (`only_products: true`)",
    "nodes_to_exclude": "leave the nodes that make it in fp32 (`nodes_to_exclude: [...]`)",
}
"""Option of a variant -> what to try with it where a part of an output is lost."""

_PRECISIONS: Mapping[str, str] = {"fp32": "write `optimize: {level: basic}`"}
_ANY_PRECISION = "take a mode with more bits"

_LOWER_LEVEL = {"extended": "basic", "basic": "none"}
"""Level of `optimize` -> the one to try where ONNX Runtime's optimizations bring in the error."""

_AS_WRITTEN = "write `session: {graph_optimization: disable}`"
_BEFORE_IT = "compare it node by node: `onnxbuild diagnose {address}`"
"""Fix where the model differs before any optimization: no setting of a variant mends that."""

_NEAR_SQNR_DB = {"fp32": 60.0, "fp16": 40.0, "bf16": 20.0, "int8": 7.0, "int4": 5.0}
_NEAR_EQUAL = {"fp32": 0.95, "fp16": 0.95}
"""Outputs that are farther off are wrong, and no bound is worth changing for them."""


def attempts_of(
    precision: str, options: Sequence[str], texts: Mapping[str, str] = _OPTIONS
) -> list[str]:
    """Return what to try with a variant that is too far from the reference; at least one attempt.

    Args:
        options: Names of the options that its mode has.
        texts: Option -> what to try with it.
    """
    bits = ["write `bits: 8`"] if (precision, "bits" in options) == ("int4", True) else []
    found = bits + [text for option, text in texts.items() if option in options]
    return found or [_PRECISIONS.get(precision, _ANY_PRECISION)]


@dataclass(frozen=True, slots=True)
class VariantFixes:
    """Fixes for a variant.

    Attributes:
        precision: The variant's.
        options: Names of the options that its mode has.
        tolerances: In force.
        owner: Variant whose own `validate` has tolerances; empty where there are only those of its precision.
        wrong: Outputs that are so far off that no bound should allow it.
        before: What mends the model where it differs before any optimization; empty where the optimizations are to
            blame, or that is not known.
        level: `optimize.level` of the variant; empty where it is not known.
    """

    precision: str
    options: Sequence[str]
    tolerances: VariantTolerances
    owner: str = ""
    wrong: Collection[str] = ()
    before: str = ""
    level: str = ""

    def __call__(self, output: str, kind: str) -> str:
        """Return the fix for a kind of breach of an output."""
        near = kind == NOISY or (output not in self.wrong and kind in _BOUNDS)
        attempts = [] if self.before and near else self._attempts(kind)
        if kind == PART:
            attempts.append("return the part as an output of its own")
        if near:
            verb, bound = _BOUNDS[kind]
            if output in self.tolerances.outputs or kind == NOISY:
                bound = f"outputs: {{{output}: {{{bound}}}}}"
            attempts.append(f"{verb} `{self._place(bound)}`")
        return either(attempts)

    def _attempts(self, kind: str) -> list[str]:
        texts = _LOST if kind == PART else _OPTIONS
        if self.precision != "fp32" or any(option in self.options for option in texts):
            return attempts_of(self.precision, self.options, texts)
        if self.before:
            return [self.before]
        lower = _LOWER_LEVEL.get(self.level or "extended")
        return [f"write `optimize: {{level: {lower}}}`" if lower else _AS_WRITTEN]

    def _place(self, bound: str) -> str:
        if self.owner:
            return f"quantization: {{{self.owner}: {{validate: {{{bound}}}}}}}"
        return f"validate: {{{self.precision}: {{{bound}}}}}"


def wrong_outputs(judged: Sequence[JudgedPoint], precision: str) -> frozenset[str]:
    """Return the outputs that are so far off at a point that the model is wrong, not imprecise."""
    least = _NEAR_SQNR_DB.get(precision, -math.inf)
    equal = _NEAR_EQUAL.get(precision, 0.0)
    return frozenset(
        name
        for _, name, each in comparisons(judged)
        if (each.sqnr_db is not None and each.sqnr_db < least)
        or (each.equal is not None and each.equal < equal)
    )


def differs_before(fault: str, address: str) -> str:
    """Return the fix for a model that differs before any optimization.

    Args:
        fault: What its converter reported; empty for nothing.
        address: `recipe:variant`.
    """
    if fault:
        return f"the converter changed what the model computes ({fault}): take options of it that the converter supports"
    return _BEFORE_IT.format(address=address)


def either(attempts: Sequence[str]) -> str:
    """Return attempts as one clause: `a, b, or c`."""
    *first, last = attempts
    return f"{', '.join(first)}, or {last}" if first else last


def fixes_of_section(section: str) -> Fix:
    """Return the fixes for a pipeline: what its operations say comes first, bounds second."""

    def fix(output: str, kind: str) -> str:
        attempt = (
            f"compare `{section}` with your own code, operation by operation (order of channels, mean and std, "
            "`method` and `first` of resize, the lines of labels)"
        )
        if kind not in _BOUNDS:
            return attempt
        _, bound = _BOUNDS[kind]
        return f"{attempt}, or widen `{section}: {{tolerances: {{outputs: {{{output}: {{{bound}}}}}}}}}`"

    return fix
