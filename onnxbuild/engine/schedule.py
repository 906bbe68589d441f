"""Schedule of steps: which may start now and where, as what they need is there and a machine has room for them."""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from onnxbuild.core.action import Action
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.decision import Reason
from onnxbuild.core.graph import Graph, Step
from onnxbuild.core.ports import HeldLock, Host

Rank = tuple[bool, bool, int, int]

DEFAULT_STEP_BYTES = 1 << 30
_PEAK_OF_INPUTS = 2.5  # benchmarks/large_model.py: what most steps take, and a session at most


def guess_bytes(input_bytes: int) -> int:
    """The assumed peak memory of a step that never ran here.

    Args:
        input_bytes: Size of all its inputs.
    """
    return max(DEFAULT_STEP_BYTES, int(_PEAK_OF_INPUTS * input_bytes))


@dataclass(slots=True)
class Pending:
    """A step that has to run, from its decision to its record.

    Attributes:
        step: The step.
        action: What decided it.
        inputs: Input name -> artifact.
        reasons: Why it runs.
        lock: Its key's, while it runs.
    """

    step: Step
    action: Action
    inputs: Mapping[str, Artifact]
    reasons: tuple[Reason, ...]
    lock: HeldLock | None = None


@dataclass(slots=True)
class Schedule:
    """The state of every step, and who is next.

    Args:
        graph: Steps in topological order.
        exclusive: Step name -> whether it runs alone on its host.
        expected_bytes: Step name -> its expected peak memory.
        callables: Step name -> the user's callables that it calls.
    """

    graph: Graph
    exclusive: Callable[[str], bool]
    expected_bytes: Callable[[str], int]
    callables: Callable[[str], frozenset[str]] = lambda name: frozenset()  # noqa: ARG005
    _called: set[str] = field(default_factory=set)
    _missing: dict[str, int] = field(default_factory=dict)
    _users: dict[str, list[str]] = field(default_factory=dict)
    _ready: deque[str] = field(default_factory=deque)
    _running: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Step name -> (host's name, expected bytes)."""
    _order: Mapping[str, int] = field(default_factory=dict)
    _height: dict[str, int] = field(default_factory=dict)
    _left_out: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._order = {name: number for number, name in enumerate(self.graph.steps)}
        for name, step in self.graph.steps.items():
            needs = {ref.step for ref in step.inputs.values()}
            self._missing[name] = len(needs)
            for need in needs:
                self._users.setdefault(need, []).append(name)
        for name in reversed(list(self.graph.steps)):
            users = self._users.get(name, ())
            self._height[name] = 1 + max((self._height[user] for user in users), default=0)
        self._ready = deque(name for name, count in self._missing.items() if count == 0)

    def priority(self, name: str) -> Rank:
        """Sorts waiting steps: what runs alone comes last, then the longest chain ahead first.

        Before these: a step with a callable that no step has called yet, since a mistake in it
        is better found before an hour of calibration than after.
        """
        is_tried = self.callables(name) <= self._called
        return self.exclusive(name), is_tried, -self._height[name], self._order[name]

    @property
    def called_count(self) -> int:
        """Number of callables that were called; priorities change with it."""
        return len(self._called)

    def pop_ready(self) -> str | None:
        """The next step whose inputs are there; it then counts as looked at."""
        return self._ready.popleft() if self._ready else None

    @property
    def has_ready(self) -> bool:
        """Whether a step is ready that was not looked at yet."""
        return bool(self._ready)

    def finish(self, name: str) -> None:
        """The step's outputs are there: what waited for them may be ready."""
        self._running.pop(name, None)
        self._called |= self.callables(name)
        for user in self._users.get(name, ()):
            self._make_ready(user)

    def _make_ready(self, user: str) -> None:
        """One of the steps that this one waits for has ended."""
        self._missing[user] -= 1
        if self._missing[user] == 0:
            self._ready.append(user)

    def fail(self, name: str) -> list[str]:
        """The step has no outputs; returns all that now can't be built, in graph order."""
        self._running.pop(name, None)
        blocked: set[str] = set()
        stack = list(self._users.get(name, ()))
        while stack:
            user = stack.pop()
            if user not in blocked and user not in self._left_out:
                blocked.add(user)
                stack += self._users.get(user, ())
        return sorted(blocked, key=self._order.__getitem__)

    def leave_out(self, names: Iterable[str]) -> None:
        """Note that these steps have no outputs; steps for which they are optional wait no longer."""
        left = [name for name in names if name not in self._left_out]
        self._left_out.update(left)
        for name in left:
            self._running.pop(name, None)
        for name in left:
            for user in self._users.get(name, ()):
                if user not in self._left_out:
                    self._make_ready(user)

    def place(self, name: str, hosts: Iterable[Host]) -> Host | None:
        """Return the host that has room for the step and the fewest steps; None if none has room."""
        free = [host for host in hosts if self._has_room(name, host)]
        return min(free, key=lambda host: len(self._running_on(host)), default=None)

    def is_full(self, hosts: Sequence[Host]) -> bool:
        """Return whether no step may start on any host, whichever it is."""
        return all(self._is_full(host) for host in hosts)

    def start(self, name: str, host: Host) -> None:
        """The step runs now."""
        self._running[name] = host.name, self.expected_bytes(name)

    def _has_room(self, name: str, host: Host) -> bool:
        running = self._running_on(host)
        if not running:
            return True
        if self._is_full(host) or self.exclusive(name):
            return False
        return sum(running.values()) + self.expected_bytes(name) <= host.memory_bytes

    def _is_full(self, host: Host) -> bool:
        running = self._running_on(host)
        return len(running) >= host.jobs or any(map(self.exclusive, running))

    def _running_on(self, host: Host) -> dict[str, int]:
        """Steps that run on a host -> their expected bytes."""
        return {step: size for step, (there, size) in self._running.items() if there == host.name}


class WaitingLine:
    """Queue of pending steps, in the order of their ranks; a heap, so that thousands may wait.

    Args:
        rank: Step name -> its rank; no two are equal.
        state: Changes whenever ranks do.
    """

    def __init__(self, rank: Callable[[str], Rank], state: Callable[[], int]) -> None:
        self._rank = rank
        self._state = state
        self._ranked_at = state()
        self._heap: list[tuple[Rank, Pending]] = []

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, pending: Pending) -> None:
        """Let a step wait."""
        heapq.heappush(self._heap, self._ranked(pending))

    def pop(self) -> Pending:
        """Take the first out of the line."""
        if self._ranked_at != self._state():
            self._ranked_at = self._state()
            self._heap = [self._ranked(pending) for _, pending in self._heap]
            heapq.heapify(self._heap)
        return heapq.heappop(self._heap)[1]

    def _ranked(self, pending: Pending) -> tuple[Rank, Pending]:
        return self._rank(pending.step.name), pending
