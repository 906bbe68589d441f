"""Facts of a machine that decide defaults; they are passed in, and found by an adapter."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from onnxbuild.host.cpu import VNNI


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The CPU that recipes are resolved for.

    Attributes:
        machine: `x86_64`, `aarch64`, ...
        cpu_flags: Instruction set flags as the kernel names them.
    """

    machine: str
    cpu_flags: frozenset[str]

    @property
    def is_arm(self) -> bool:
        """Whether this is a 64-bit ARM machine."""
        return self.machine in {"aarch64", "arm64"}

    @property
    def sums_saturate(self) -> bool:
        """Whether U8S8 products overflow 16 bits: x86 without VNNI or AMX.

        Source: onnxruntime's quantization page, section on U8S8 and `reduce_range`.
        """
        return not self.is_arm and not (self.cpu_flags & VNNI)


TargetCpu = Literal["this", "avx2", "avx512", "avx_vnni", "avx512_vnni", "amx", "arm64"]

TARGET_CPUS: Mapping[str, HostFacts] = {
    "avx2": HostFacts("x86_64", frozenset({"avx2"})),
    "avx512": HostFacts("x86_64", frozenset({"avx2", "avx512f"})),
    "avx_vnni": HostFacts("x86_64", frozenset({"avx2", "avx_vnni"})),
    "avx512_vnni": HostFacts("x86_64", frozenset({"avx2", "avx512f", "avx512_vnni"})),
    "amx": HostFacts("x86_64", frozenset({"avx2", "avx512f", "avx512_vnni", "amx_int8"})),
    "arm64": HostFacts("aarch64", frozenset({"asimddp"})),
}
"""A target CPU's name in recipes -> what it has, flags as the kernel names them."""
