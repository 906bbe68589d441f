"""The section `target`: the machines that models are made for, where that is not this one."""

from __future__ import annotations

from dataclasses import dataclass

from onnxbuild.core.params import option
from onnxbuild.host.host import TargetCpu


@dataclass(frozen=True, slots=True)
class TargetOptions:
    """The machine that the models will run on; it decides options that are left at `auto`."""

    cpu: TargetCpu = option(
        "this",
        help="the CPU's instructions for 8-bit sums: those of `this` machine, or of the weakest CPU that the models must "
        "run on. Sums saturate on avx2 and avx512 unless `reduce_range` prevents it; not on the others",
    )
