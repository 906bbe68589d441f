"""Check options of weight-only variants that do not go together."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.recipe.parts.parts import Parts
from onnxbuild.recipe.yaml.faults import Fault
from onnxbuild.recipe.yaml.node import locate
from onnxbuild.steps.quantize_weights import WeightOptions


def check_weights(parts: Parts) -> Iterator[Fault]:
    """Yield the faults among variants of mode `weight_only`."""
    for variant in parts.variants.values():
        options = variant.options
        if not isinstance(options, WeightOptions):
            continue
        if options.method == "hqq" and options.symmetric:
            what = (
                f"variant '{variant.name}' has method 'hqq', which finds zero points, "
                "and `symmetric: true`, which keeps none"
            )
            at = locate(parts.root, ("quantization", variant.name, "symmetric"))
            yield Fault(what, at, "write `method: rtn`, or remove `symmetric`")
        if options.method == "gptq" and not parts.node("calibration", "data"):
            what = f"variant '{variant.name}' has method 'gptq', and no calibration.data is named"
            at = locate(parts.root, ("quantization", variant.name, "method"))
            yield Fault(what, at, "add `calibration: {data: FILE.py:CALLABLE}`")
