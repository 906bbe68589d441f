"""Describe how far a step or a run is: a bar, the count, the rate, the time left."""

import math
from collections import deque
from dataclasses import dataclass, field

from onnxbuild.core.event import (
    BYTES,
    SECONDS,
    Event,
    RunStarted,
    StepBlocked,
    StepCached,
    StepFailed,
    StepFinished,
    StepLeftOut,
    StepProgress,
    StepStarted,
)

BAR_CELLS = 16
_WINDOW_S = 15.0
_SLACK, _SLACK_S = 0.25, 3.0
"""Allowed lateness of an end against what was said: a share of what is left, and seconds."""
_SMALL_RATE = 10
_LONG_S = 2.0
_MINUTE_S, _HOUR_S = 60, 3600
_FULL, _HALF, _EMPTY = "━", "╸", "─"
_KIB = 1 << 10


class Meter:
    """Measures the rate of one step from its reports.

    The rate is that of the last 15 s, so that a slow start does not count for ever. A count that falls, or
    a new total, is the next loop of the step: it begins anew. Where what is left takes longer than was said, as
    where each item is larger than the one before, no time is said from then on; bytes are all alike, whatever a disk's speed.
    """

    def __init__(self) -> None:
        self._seen: deque[tuple[float, StepProgress]] = deque()
        self._end_s = math.inf
        self._grows = False

    def take(self, event: StepProgress, now_s: float) -> None:
        """Take a report.

        Args:
            now_s: By the monotonic clock.
        """
        if self._seen and not _goes_on(self._seen[-1][1], event):
            self._seen.clear()
            self._end_s, self._grows = math.inf, False
        self._seen.append((now_s, event))
        while len(self._seen) > 2 and now_s - self._seen[0][0] > _WINDOW_S:  # noqa: PLR2004 - of a rate
            self._seen.popleft()
        left_s = self.left_s(now_s)
        if left_s is not None and event.unit not in (SECONDS, BYTES):
            self._grows = now_s + left_s > self._end_s + max(_SLACK_S, _SLACK * left_s)
            self._end_s = min(self._end_s, now_s + left_s)

    def __bool__(self) -> bool:
        """Return whether there was a report."""
        return bool(self._seen)

    @property
    def last(self) -> StepProgress:
        """The last report."""
        return self._seen[-1][1]

    @property
    def rate(self) -> float:
        """Units a second; 0 while there is one report alone."""
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        return (last.done - first.done) / (last_s - first_s) if last_s > first_s else 0.0

    def left_s(self, now_s: float) -> float | None:
        """Return the seconds left, as far as can be said now; None if nothing can be.

        Args:
            now_s: By the monotonic clock.
        """
        last_s, last = self._seen[-1]
        if self._grows or not last.total or (last.unit != SECONDS and self.rate <= 0):
            return None
        rate = 1.0 if last.unit == SECONDS else self.rate
        return max((last.total - last.done) / rate - (now_s - last_s), 0.0)

    def words(self, now_s: float) -> str:
        """Return `120 of 300 samples, 12.3/s, 14 s left`, as much of it as is known.

        Args:
            now_s: By the monotonic clock.
        """
        last, left_s = self.last, self.left_s(now_s)
        rate = "" if last.unit == SECONDS or self.rate <= 0 else f"{_rate(self.rate, last.unit)}/s"
        most = "at most " if last.unit == SECONDS else ""
        left = "" if left_s is None else f"{most}{duration(left_s)} left"
        count = "" if last.unit == SECONDS and last.total else _count(last)
        return ", ".join(filter(None, (count, rate, left)))

    def line(self, now_s: float) -> str:
        """Return `words`, and what is being done or the best so far.

        Args:
            now_s: By the monotonic clock.
        """
        return "; ".join(filter(None, (self.words(now_s), self.last.note)))

    def is_of_known_end(self) -> bool:
        """Return whether it is known of how much the last report is."""
        return bool(self._seen) and self.last.total > 0


def bar(done: float, total: float, cells: int = BAR_CELLS) -> str:
    """Return a bar; empty where the total is not known.

    Args:
        done: How much is done.
        total: Of how much; 0 if that is not known.
    """
    if total <= 0:
        return ""
    halves = int(2 * cells * min(max(done / total, 0.0), 1.0))
    filled = _FULL * (halves // 2) + _HALF * (halves % 2)
    return filled + _EMPTY * (cells - len(filled))


def duration(seconds: float) -> str:
    """Return `8 s`, `2 min 5 s` or `1 h 3 min`; of less than a second, `1 s`."""
    whole = max(math.ceil(seconds), 1) if seconds < _MINUTE_S else round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _HOUR_S:
        return f"{whole // _MINUTE_S} min {whole % _MINUTE_S} s"
    return f"{whole // _HOUR_S} h {whole % _HOUR_S // _MINUTE_S} min"


def _goes_on(before: StepProgress, now: StepProgress) -> bool:
    return before.done <= now.done and (before.total, before.unit) == (now.total, now.unit)


def last_time(seconds: float) -> str:
    """Return `took 12 s last time`; empty for what took less than two seconds, or what is not known."""
    return f"took {duration(seconds)} last time" if seconds >= _LONG_S else ""


def _count(event: StepProgress) -> str:
    if not (event.done or event.total or event.unit):
        return ""
    if event.unit == BYTES:
        total = f" of {size(event.total)}" if event.total else ""
        return f"{size(event.done)}{total}"
    total = f" of {event.total:,.0f}" if event.total else ""
    is_one = (event.total or event.done) == 1
    unit = event.unit.removesuffix("s") if is_one else event.unit
    return f"{event.done:,.0f}{total} {unit}".rstrip()


def _rate(rate: float, unit: str) -> str:
    if unit == BYTES:
        return size(rate)
    return f"{rate:.1f}" if rate < _SMALL_RATE else f"{rate:,.0f}"


def size(size_bytes: float) -> str:
    """Return `12 bytes`, `32.6 KiB`, `90.4 MiB` or `1.2 GiB`."""
    if size_bytes < _KIB:
        return f"{size_bytes:.0f} bytes"
    for unit in ("KiB", "MiB"):
        size_bytes /= _KIB
        if size_bytes < _KIB:
            return f"{size_bytes:.1f} {unit}"
    return f"{size_bytes / _KIB:.1f} GiB"


_CELLS = 8
_LEAST_A_SECOND = 1.0


class RunMeter:
    """Counts the steps of a run that have ended, without those that were cached.

    The rate is that since the first step started: steps take from milliseconds to hours, so the last few say little.

    Attributes:
        total: Steps of the run.
    """

    def __init__(self) -> None:
        self.total = 0
        self._cached: set[str] = set()
        self._ended: set[str] = set()
        self._began_s: float | None = None

    def take(self, event: Event, now_s: float) -> None:
        """Take one event.

        Args:
            event: Any of the run.
            now_s: By the monotonic clock.
        """
        if isinstance(event, RunStarted):
            self.total, self._cached, self._ended, self._began_s = event.steps, set(), set(), None
        elif isinstance(event, StepCached):
            self._cached.add(event.step)
        elif isinstance(event, StepStarted):
            self._began_s = now_s if self._began_s is None else self._began_s
        elif isinstance(event, StepFinished | StepFailed | StepBlocked):
            self._ended.add(event.step)
        elif isinstance(event, StepLeftOut):
            self._ended.update(event.followers)

    @property
    def cached(self) -> int:
        """Number of steps whose result was in the store."""
        return len(self._cached)

    @property
    def ended(self) -> int:
        """Number of the other steps that have ended, successfully or not."""
        return len(self._ended - self._cached)

    @property
    def left(self) -> int:
        """Number of steps that have not ended yet, running ones included."""
        return max(self.total - self.cached - self.ended, 0)

    def bar(self) -> str:
        """Return a bar; empty where nothing has to run."""
        return bar(self.ended, self.ended + self.left, _CELLS) if self.left else ""

    def pace(self, now_s: float) -> str:
        """Return `2.3 steps/min, 4 min 10 s left`; empty while no step that ran has ended, and at the end.

        Args:
            now_s: By the monotonic clock.
        """
        if self._began_s is None or not self.ended or not self.left or now_s <= self._began_s:
            return ""
        rate = self.ended / (now_s - self._began_s)
        is_fast = rate >= _LEAST_A_SECOND
        shown = f"{rate:.1f} steps/s" if is_fast else f"{rate * _MINUTE_S:.1f} steps/min"
        return f"{shown}, {duration(self.left / rate)} left"


@dataclass(slots=True)
class InProgress:
    """A step that runs, or what is made before any step runs.

    Attributes:
        since_s: When it started, by the monotonic clock.
        reason: The first one why.
        last_s: How long it took last time; 0 if that is not known.
        meter: How far it is.
        is_step: Whether it is one of the graph's.
        said_s: When it was last spoken of.
    """

    since_s: float
    reason: str = ""
    last_s: float = 0.0
    meter: Meter = field(default_factory=Meter)
    is_step: bool = True
    said_s: float = 0.0


class StepsInProgress:
    """The steps that run now, and how many there are of each state.

    Attributes:
        running: Name -> step.
        run: How far the whole run is.
        has_begun: Whether anything was reported to be made.
    """

    def __init__(self) -> None:
        self.running: dict[str, InProgress] = {}
        self.run = RunMeter()
        self.has_begun = False

    def take(self, event: Event, now_s: float) -> InProgress | None:
        """Take one event; return the step that goes on.

        Args:
            event: Any of the run.
            now_s: By the monotonic clock.
        """
        self.run.take(event, now_s)
        if isinstance(event, StepStarted):
            reason = event.reasons[0] if event.reasons else ""
            self.running[event.step] = InProgress(now_s, reason, event.last_s, said_s=now_s)
        elif isinstance(event, StepProgress):
            return self._go_on(event, now_s)
        elif isinstance(event, StepFinished | StepFailed | StepBlocked):
            self.running.pop(event.step, None)
        return None

    def _go_on(self, event: StepProgress, now_s: float) -> InProgress | None:
        """Note how far something is; what is no step begins with its first report, and ends with its last."""
        self.has_begun = True
        began = InProgress(now_s, is_step=False, said_s=now_s)
        running = self.running.setdefault(event.step, began)
        if not running.is_step and event.done >= event.total:
            del self.running[event.step]
            return None
        if not event.is_sign_of_life:
            running.meter.take(event, now_s)
        return running
