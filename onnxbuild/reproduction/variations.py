"""The differences of each fresh build from ordinary ones: none of them may matter."""

from dataclasses import replace

from onnxbuild.adapters import machine
from onnxbuild.adapters.toolchain.locales import other_locales
from onnxbuild.adapters.toolchain.step_environment import ORDINARY, StepEnvironment

_TIME_ZONES = ("<+1345>-13:45", "<-11>11")  # at any moment, one of them has another date than UTC


_UMASKS = (0o077, 0o002)


def surroundings_of_round(number: int, original: str) -> StepEnvironment:
    """The surroundings of the `number`-th fresh build, which is in another folder.

    Args:
        number: From 1; each has others.
        original: Where the project is.
    """
    cores = machine.usable_cores()
    counts = [count for count in (1, cores + 1, cores // 2) if count not in {0, cores}]
    locales = other_locales()
    turn = number - 1
    return StepEnvironment(
        hash_seed=number,
        threads=counts[turn % len(counts)],
        time_zone=_TIME_ZONES[turn % len(_TIME_ZONES)],
        locale=locales[turn % len(locales)],
        umask=_UMASKS[turn % len(_UMASKS)],
        original=original,
    )


def one_by_one(around: StepEnvironment) -> dict[str, StepEnvironment]:
    """Ordinary surroundings with one thing of `around` each: its name -> them."""
    return {
        "hash seed": replace(ORDINARY, hash_seed=around.hash_seed),
        "threads": replace(ORDINARY, threads=around.threads),
        "folder": replace(ORDINARY, original=around.original),
        "time zone": replace(ORDINARY, time_zone=around.time_zone),
        "locale": replace(ORDINARY, locale=around.locale),
        "umask": replace(ORDINARY, umask=around.umask),
    }


def described(around: StepEnvironment) -> dict[str, str]:
    """Return what is unlike every build's surroundings: its name -> how, as a person would say it."""
    said = {
        "hash seed": (
            around.hash_seed != ORDINARY.hash_seed,
            f"PYTHONHASHSEED {ORDINARY.hash_seed} -> {around.hash_seed}",
        ),
        "threads": (
            around.threads is not None,
            f"cores {machine.usable_cores()} -> {around.threads}",
        ),
        "folder": (bool(around.original), "another folder, HOME and TMPDIR"),
        "time zone": (
            around.time_zone != ORDINARY.time_zone,
            f"TZ {ORDINARY.time_zone} -> {around.time_zone}",
        ),
        "locale": (around.locale != ORDINARY.locale, f"LANG {ORDINARY.locale} -> {around.locale}"),
        "umask": (
            around.umask != ORDINARY.umask,
            f"umask {ORDINARY.umask:03o} -> {around.umask:03o}",
        ),
    }
    return {name: text for name, (differs, text) in said.items() if differs}
