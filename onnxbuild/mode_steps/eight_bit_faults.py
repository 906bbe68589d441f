"""Faults that the modes share whose weights have few bits."""

from collections.abc import Iterator

from onnxbuild.document.faults import Fault
from onnxbuild.document.parts import Parts
from onnxbuild.steps.quantize_dynamic import DynamicOptions
from onnxbuild.steps.quantize_static import StaticOptions

ADD_DATA = "add `calibration: {data: FILE.py:CALLABLE}` or `{data: FILE.npz}`"


def pairs_of_unsigned(
    name: str, options: DynamicOptions | StaticOptions, parts: Parts
) -> Iterator[Fault]:
    """Yield the fault of `reduce_range: pairs` with weights that never saturate."""
    if (options.reduce_range, options.weight_type) == ("pairs", "uint8"):
        what = (
            f"variant '{name}' has `reduce_range: pairs`, which is for signed weights, "
            f"and weight_type '{options.weight_type}', whose sums never saturate"
        )
        at = parts.at("quantization", name, "reduce_range")
        yield Fault(what, at, "write `weight_type: int8`, or remove `reduce_range`")


def missing_calibration(name: str, written: str, parts: Parts) -> Iterator[Fault]:
    """Yield the fault of an option that needs data, where the recipe names none.

    Args:
        written: The option as a recipe has it: `balance: true`.
    """
    if parts.lacks("calibration", "data"):
        what = f"variant '{name}' has `{written}`, and no calibration.data is named"
        yield Fault(what, parts.at("quantization", name, written.partition(":")[0]), ADD_DATA)
