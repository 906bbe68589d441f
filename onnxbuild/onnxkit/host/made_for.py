"""The machine that an artifact is bound to, and whether this machine is of that kind."""

import os
from dataclasses import dataclass

from onnxbuild.core.errors import StepError
from onnxbuild.host.cpu import differing_flags
from onnxbuild.host.measured import cpu
from onnxbuild.onnxkit.host.host import kernel_flags

_X86 = ("x86_64", "amd64")
_INSTRUCTIONS = frozenset(
    {
        "pni", "ssse3", "cx16", "sse4_1", "sse4_2", "sse4a", "movbe", "popcnt", "abm", "aes",
        "pclmulqdq", "vaes", "vpclmulqdq", "avx", "f16c", "fma", "rdrand", "rdseed", "fsgsbase",
        "bmi1", "bmi2", "avx2", "adx", "sha_ni", "gfni", "clflushopt", "clwb", "rdpid", "avx_vnni",
        "avx_ifma", "avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl", "avx512ifma",
        "avx512vbmi", "avx512_vbmi2", "avx512_vnni", "avx512_bitalg", "avx512_vpopcntdq",
        "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16",
    }
)  # fmt: skip
"""Names in Linux's /proc/cpuinfo of what x86 compilers may use with -march=native, as TorchInductor
has it; other architectures name little else."""


@dataclass(frozen=True, slots=True)
class MadeFor:
    """The machine that an artifact is bound to.

    Attributes:
        machine: `x86_64`, `aarch64`, ...
        cpu: The CPU's name, for people.
        flags: Each instruction set flag that counts -> whether it must be there or must not: of
            layouts all that decide them, of machine code those that it may use.
        device: Of a GPU's artifact: what the step's key says of it; else empty.
    """

    machine: str
    cpu: str
    flags: dict[str, bool]
    device: str = ""


def this_machine(device: str = "") -> MadeFor:
    """The machine that this process runs on, for what takes its layouts."""
    model, _ = cpu()
    return MadeFor(os.uname().machine, model, kernel_flags(), device)


def this_instruction_set() -> MadeFor:
    """Return this machine as a target of machine code, which runs on CPUs with more flags, too."""
    model, flags = cpu()
    machine = os.uname().machine
    if machine in _X86:
        flags &= _INSTRUCTIONS
    return MadeFor(machine, model, dict.fromkeys(sorted(flags), True))


def other_machine(made_for: MadeFor) -> str:
    """Return what differs between this machine and the one that something was made for, or "".

    A GPU is not looked for.
    """
    machine = os.uname().machine
    if machine != made_for.machine:
        return f"it was made for {made_for.machine}; this is {machine}"
    _, flags = cpu()
    differing = differing_flags(made_for.flags, flags)
    if differing:
        return f"it was made for {made_for.cpu}; this CPU is {', '.join(differing)}"
    return ""


def check_made_for(made_for: MadeFor | None, name: str) -> None:
    """Refuse a model from elsewhere that is made for another kind of machine.

    Args:
        made_for: The machine; None where any will do.
        name: The model, as the user named it.

    Raises:
        StepError: This machine is of another kind.
    """
    if made_for is not None and (reason := other_machine(made_for)):
        raise StepError(
            f"{name} can't run here: {reason}",
            where=name,
            fix="compare with what was built on this kind of machine",
        )
