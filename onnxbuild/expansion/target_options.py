"""The section `target`: the machines that models are made for, where that is not this one."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.host import TargetCpu
from onnxbuild.core.params import option


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The machine that the models will run on; it decides options that are left at `auto`."""

    cpu: TargetCpu = option(
        "this",
        help="the CPU's instructions for 8-bit sums; `this` machine's, or the weakest to serve: "
        "avx2 and avx512 saturate unless weights keep to it (`reduce_range`); the others don't",
    )
