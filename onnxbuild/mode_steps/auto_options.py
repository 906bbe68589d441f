"""Options of 8-bit modes that are left at `auto`, decided by what the model will run on."""

import dataclasses
from typing import Any, TypeVar

from onnxbuild.host.host import HostFacts
from onnxbuild.steps.quantize_dynamic import DynamicOptions
from onnxbuild.steps.quantize_static import StaticOptions

Options = TypeVar("Options", DynamicOptions, StaticOptions)


def without_auto(options: Options, machine: HostFacts) -> Options:
    """Replace each `auto` by what the machine asks for."""
    changes: dict[str, Any] = {}
    activations = getattr(options, "activation_type", "uint8")
    if activations == "auto":
        activations = "int8" if machine.is_arm else "uint8"
        changes["activation_type"] = activations
    if options.reduce_range == "auto":
        products = options.weight_type == "int8" and activations in {"uint8", "int8"}
        changes["reduce_range"] = "pairs" if products and machine.sums_saturate else False
    return dataclasses.replace(options, **changes) if changes else options
