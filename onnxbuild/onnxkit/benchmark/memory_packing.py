"""Models in groups that fit in memory together, each with those that all are compared with."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from onnxbuild.core.errors import StepError

_MARGIN = 1.1
"""Factor on measured memory: allocators keep some of what is freed, and libraries have caches."""

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Need:
    """Memory that a model takes, alone in a process.

    Attributes:
        peak_bytes: Peak while it is loaded and first run.
        steady_bytes: Memory that it keeps from then on.
    """

    peak_bytes: int
    steady_bytes: int


def all_fit(needs: Mapping[str, Need], room_bytes: int) -> bool:
    """Return whether all fit at once.

    Models are loaded one after the other, so they take what each keeps, and the most that one of
    them takes beyond that.

    Args:
        needs: Model -> its need.
        room_bytes: Resident memory that they may take.
    """
    return _together(needs.values()) * _MARGIN <= room_bytes


def memory_groups(
    needs: Mapping[str, Need], shared: Collection[str], room_bytes: int, where: str
) -> list[tuple[str, ...]]:
    """One group of all where that fits; else as few as first fit finds, `shared` in each.

    Args:
        needs: Model -> its need, in the order in which they are loaded.
        shared: Models that the others are compared with; may be empty.
        room_bytes: Resident memory that a group may take.
        where: `recipe:step`, for messages.

    Returns: Names in the order of `needs`; each that is not shared is in one group.

    Raises:
        StepError: A model does not fit into memory with those that it is compared with.
    """
    others = [name for name in needs if name not in shared]
    if all_fit(needs, room_bytes) or not others:
        return [tuple(needs)]
    groups: list[set[str]] = []
    for name in others:
        for group in groups:
            if all_fit({each: needs[each] for each in (*group, name)}, room_bytes):
                group.add(name)
                break
        else:
            _check_fits(name, [each for each in needs if each in shared], needs, room_bytes, where)
            groups.append({*shared, name})
    return [tuple(name for name in needs if name in group) for group in groups]


def _check_fits(
    name: str, others: list[str], needs: Mapping[str, Need], room_bytes: int, where: str
) -> None:
    """Check that a model and those that it is compared with fit in memory, without the margin.

    Raises:
        StepError: They take more.
    """
    taken = _together([needs[each] for each in (name, *others)])
    if taken <= room_bytes:
        return
    company = f" together with {' and '.join(repr(each) for each in others)}" if others else ""
    raise StepError(
        f"'{name}'{company} takes {taken / _GIB:.2f} GiB of memory, and {room_bytes / _GIB:.2f} "
        "GiB are left for what is measured at once",
        where=where,
        fix="allow more with `--memory`, end what else runs on this machine, or compare with less: "
        "`benchmark: {baseline: false}`, fewer `clients`, fewer `--against`",
    )


def _together(needs: Iterable[Need]) -> int:
    found = list(needs)
    beyond = (max(0, each.peak_bytes - each.steady_bytes) for each in found)
    return sum(each.steady_bytes for each in found) + max(beyond, default=0)
