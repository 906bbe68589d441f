"""A CPU's flags: how Linux prints them, and what they mean for a model.

The package uses this file, and every bundle's load.py contains it. It imports nothing that takes time.
"""

from collections.abc import Iterable, Mapping

VNNI = frozenset({"avx512_vnni", "avx_vnni", "amx_int8", "avx512vnni", "avxvnni"})
"""Flags of x86 CPUs that add products of 8-bit numbers in 32 bits: one of them is enough."""


def parse_cpuinfo(lines: Iterable[str]) -> tuple[str, frozenset[str]]:
    """Return the first core's model name and instruction set flags.

    Args:
        lines: Of /proc/cpuinfo. Where a fact is not in it, the name or the set is empty.
    """
    model, flags = "", frozenset[str]()
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in {"model name", "Processor"}:
            model = value.strip()
        elif name.strip() in {"flags", "Features"}:
            flags = frozenset(value.split())
        elif not line.strip() and flags:
            break
    return model, flags


def differing_flags(wanted: Mapping[str, bool], found: Iterable[str]) -> list[str]:
    """Return `with FLAG` or `without FLAG` for each flag that a CPU has otherwise than wanted.

    Args:
        wanted: Flag -> whether the CPU must have it, or must not.
        found: The CPU's flags.
    """
    there = set(found)
    return [
        f"{'without' if had else 'with'} {flag}"
        for flag, had in wanted.items()
        if had != (flag in there)
    ]
