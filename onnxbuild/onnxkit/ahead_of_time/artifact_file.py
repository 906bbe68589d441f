"""What was made ahead of time, as an artifact: the model's files, and artifact.json about them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from onnxbuild.core.params import from_json
from onnxbuild.onnxkit.host.host import cpu, kernel_flags
from onnxbuild.onnxkit.reports import write_report

DESCRIPTION_FILE = "artifact.json"
OPERATORS_FILE = "required_operators.config"

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


@dataclass(frozen=True, slots=True)
class ArtifactDescription:
    """How an artifact is loaded.

    Attributes:
        kind: Its format's name.
        file: The file that an InferenceSession opens.
        provider: Execution provider by its full name.
        provider_options: Its options.
        folder_options: Names of options that are the artifact's own folder.
        graph_optimization: Level as `session.graph_optimization` has it.
        config: Session config entries.
        made_for: None where any machine will do.
        facts: Additional facts, plain JSON.
    """

    kind: str
    file: str
    provider: str
    provider_options: dict[str, str] = field(default_factory=dict)
    folder_options: tuple[str, ...] = ()
    graph_optimization: str = "all"
    config: dict[str, str] = field(default_factory=dict)
    made_for: MadeFor | None = None
    facts: dict[str, Any] = field(default_factory=dict)


def this_machine(device: str = "") -> MadeFor:
    """The machine that this process runs on, for what takes its layouts."""
    model, _ = cpu()
    return MadeFor(os.uname().machine, model, kernel_flags(), device)


def this_instruction_set() -> MadeFor:
    """The same for machine code: more flags than these do no harm."""
    model, flags = cpu()
    machine = os.uname().machine
    if machine in _X86:
        flags &= _INSTRUCTIONS
    return MadeFor(machine, model, dict.fromkeys(sorted(flags), True))


def other_machine(made_for: MadeFor) -> str:
    """What this machine has otherwise than the one that something was made for; empty if nothing.

    A GPU is not looked for.
    """
    machine = os.uname().machine
    if machine != made_for.machine:
        return f"it was made for {made_for.machine}; this is {machine}"
    _, flags = cpu()
    differing = [
        f"{'without' if had else 'with'} {flag}"
        for flag, had in made_for.flags.items()
        if had != (flag in flags)
    ]
    if differing:
        return f"it was made for {made_for.cpu}; this CPU is {', '.join(differing)}"
    return ""


def write_description(folder: Path, description: ArtifactDescription) -> None:
    """Write artifact.json."""
    write_report(folder, asdict(description), DESCRIPTION_FILE)


def read_description(folder: Path) -> ArtifactDescription:
    """Read what `write_description` wrote."""
    parsed: Mapping[str, Any] = json.loads((folder / DESCRIPTION_FILE).read_text(encoding="utf-8"))
    return from_json(ArtifactDescription, parsed, DESCRIPTION_FILE)
