"""TensorRT's profiles of shapes, from the ranges of the dynamic axes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from onnxbuild.core.axis import shape_at, symbols_of
from onnxbuild.core.recipe import Axis, DummyInput

FROM_AXES = "profiles_from_axes"
FROM_AXES_HELP = (
    "write trt_profile_*_shapes for the graph's inputs from dynamic_axes: one engine for the whole "
    "range, which TensorRT would else build anew when a size leaves what it has seen; only for a "
    "model that TensorRT takes as a whole"
)
_SIZES = {"min": "min", "opt": "example", "max": "max"}


def with_profiles(
    options: Mapping[str, Any], inputs: Mapping[str, DummyInput], axes: Mapping[str, Axis]
) -> dict[str, Any]:
    """`options` with the three profiles that the axes' ranges make; what is written stays.

    Args:
        options: TensorRT's.
        inputs: The model's; those without a dynamic axis need no profile.
        axes: Name -> its range.

    Source: the page of the TensorRT execution provider, section on explicit shape ranges.
    """
    dynamic = [each for each in inputs.values() if any(map(symbols_of, each.shape))]
    symbols = {name for each in dynamic for size in each.shape for name in symbols_of(size)}
    if symbols - axes.keys():
        return dict(options)  # the recipe's fault, reported elsewhere
    made = {}
    for profile, which in _SIZES.items():
        sizes = {name: int(getattr(axis, which)) for name, axis in axes.items()}
        shapes = ((each.name, shape_at(each.shape, sizes)) for each in dynamic)
        made[f"trt_profile_{profile}_shapes"] = ",".join(
            f"{name}:{'x'.join(map(str, shape))}" for name, shape in shapes
        )
    return {**made, **options} if dynamic else dict(options)
