"""Report how far a step is, to whoever looks on; no part of its key or its result.

A process has one listener at most; without one, a report costs a comparison. Golden digests of steps
leave all of this out (tests/step_code.py).
"""

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import ClassVar, TypeVar

T = TypeVar("T")

Listener = Callable[[float, float, str, str], None]
"""Receiver of progress: done, total, unit and note, as `report` takes them."""


class _State:
    """Progress reporting of this process: its listener, stage and totals.

    Attributes:
        listener: Takes reports; None while nobody looks on.
        stage: Begins the note of each report.
        is_whole: Whether the step reports as a whole; its parts are ignored then.
        totals: Unit -> the total that was last known of it.
    """

    listener: Listener | None = None
    stage = ""
    is_whole = False
    totals: ClassVar[dict[str, int]] = {}


def listen(listener: Listener | None) -> None:
    """Send all reports of this process to `listener`; to nobody if None."""
    _State.listener, _State.stage, _State.is_whole = listener, "", False
    _State.totals.clear()


def report(
    done: float, total: float = 0, unit: str = "", note: str = "", *, whole: bool = False
) -> None:
    """Report how far the step is.

    Args:
        done: How much is done.
        total: Of how much; 0 where that is not known.
        unit: What is counted: "samples"; "s" for seconds of a bound, "bytes" for a size.
        note: What is being done, or the best so far.
        whole: This is how far the step is as a whole: ignore what its parts report from now on.
    """
    if _State.listener is None or (_State.is_whole and not whole):
        return
    _State.is_whole = whole
    _State.listener(done, total, unit, "; ".join(filter(None, (_State.stage, note))))


def phase(text: str) -> None:
    """Name what is done from here on where no count of it is known: "translating to ONNX".

    Args:
        text: A few words; the phase ends where another begins, or something is counted.
    """
    report(0, note=text)


def stage(text: str) -> None:
    """Name what the reports that follow are about: "batch=64, 2 of 3"."""
    _State.stage = text


def counted(
    items: Iterable[T], unit: str, total: int = 0, doing: Callable[[T], str] | None = None
) -> Iterator[T]:
    """Pass items on, and report after each how many there were.

    Args:
        items: What is gone through.
        unit: What they are: "samples".
        total: How many there will be at most; 0 for as many as `items` says, or as another loop
            knows of the unit: data that passes through two loops is often known to one alone.
        doing: What is done with an item, reported before it is passed on; None for items that take no time.
    """
    total = total or operator.length_hint(items)
    if total:
        _State.totals[unit] = total
    for number, item in enumerate(items, 1):
        if doing is not None:
            report(number - 1, total or _State.totals.get(unit, 0), unit, doing(item))
        yield item
        report(number, total or _State.totals.get(unit, 0), unit)
