"""Check options of 8-bit variants that lack something or contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.recipe.parts.parts import Parts
from onnxbuild.recipe.yaml.faults import Fault
from onnxbuild.recipe.yaml.node import locate
from onnxbuild.steps.quantize_dynamic import DynamicOptions
from onnxbuild.steps.quantize_static import StaticOptions


def check_eight_bits(parts: Parts) -> Iterator[Fault]:
    """Yield the faults among variants of the modes `dynamic` and `static`."""
    for variant in parts.variants.values():
        options = variant.options
        if isinstance(options, DynamicOptions | StaticOptions) and (
            (options.reduce_range, options.weight_type) == ("pairs", "uint8")
        ):
            what = (
                f"variant '{variant.name}' has `reduce_range: pairs`, which is for signed weights, "
                f"and weight_type '{options.weight_type}', whose sums never saturate"
            )
            at = locate(parts.root, ("quantization", variant.name, "reduce_range"))
            yield Fault(what, at, "write `weight_type: int8`, or remove `reduce_range`")
        if not isinstance(options, DynamicOptions):
            continue
        asked = {"balance: true": options.balance, "rounding: gptq": options.rounding == "gptq"}
        for written, wanted in asked.items():
            if wanted and not parts.node("calibration", "data"):
                key = written.partition(":")[0]
                what = (
                    f"variant '{variant.name}' has `{written}`, and no calibration.data is named"
                )
                at = locate(parts.root, ("quantization", variant.name, key))
                fix = "add `calibration: {data: FILE.py:CALLABLE}` or `{data: FILE.npz}`"
                yield Fault(what, at, fix)
        if options.rounding == "gptq" and options.weight_type == "uint8":
            what = (
                f"variant '{variant.name}' has `rounding: gptq`, which rounds to int8, "
                f"and weight_type '{options.weight_type}'"
            )
            at = locate(parts.root, ("quantization", variant.name, "weight_type"))
            yield Fault(what, at, "write `weight_type: int8`, or remove `rounding`")
