"""Schedule of steps: which may start now, as what they need is there and the machine has room for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from onnxbuild.core.graph import Graph

DEFAULT_STEP_BYTES = 1 << 30
_PEAK_OF_INPUTS = 2.5  # benchmarks/large_model.py: what most steps take, and a session at most


def guess_bytes(input_bytes: int) -> int:
    """The assumed peak memory of a step that never ran here.

    Args:
        input_bytes: Size of all its inputs.
    """
    return max(DEFAULT_STEP_BYTES, int(_PEAK_OF_INPUTS * input_bytes))


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of what steps share.

    Attributes:
        jobs: Steps at a time.
        memory_bytes: Sum of the running steps' expected peaks; one step alone may exceed it.
    """

    jobs: int
    memory_bytes: int


@dataclass(slots=True)
class Schedule:
    """The state of every step, and who is next.

    Args:
        graph: Steps in topological order.
        limits: What steps share.
        exclusive: Step name -> whether it runs alone.
        expected_bytes: Step name -> its expected peak memory.
        callables: Step name -> the user's callables that it calls.
    """

    graph: Graph
    limits: Limits
    exclusive: Callable[[str], bool]
    expected_bytes: Callable[[str], int]
    callables: Callable[[str], frozenset[str]] = lambda name: frozenset()  # noqa: ARG005
    _called: set[str] = field(default_factory=set)
    _missing: dict[str, int] = field(default_factory=dict)
    _users: dict[str, list[str]] = field(default_factory=dict)
    _ready: deque[str] = field(default_factory=deque)
    _running: dict[str, int] = field(default_factory=dict)
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

    def priority(self, name: str) -> tuple[bool, bool, int, int]:
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

    def has_room(self, name: str) -> bool:
        """Return whether the step may run in parallel with the running ones."""
        if not self._running:
            return True
        if self.is_full:
            return False
        if self.exclusive(name):
            return False
        used = sum(self._running.values())
        return used + self.expected_bytes(name) <= self.limits.memory_bytes

    @property
    def is_full(self) -> bool:
        """Whether no step may start, whichever it is."""
        return len(self._running) >= self.limits.jobs or any(map(self.exclusive, self._running))

    def start(self, name: str) -> None:
        """The step runs now."""
        self._running[name] = self.expected_bytes(name)
