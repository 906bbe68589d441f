"""What of a machine decides defaults: facts, passed in; how they are found is an adapter's."""

from __future__ import annotations

from dataclasses import dataclass


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
        vnni = {"avx512_vnni", "avx_vnni", "amx_int8", "avx512vnni", "avxvnni"}
        return not self.is_arm and not (self.cpu_flags & vnni)
