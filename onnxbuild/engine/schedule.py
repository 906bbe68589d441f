"""Schedule of steps: which may start now and where, as what they need is there and a machine has room for them."""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from onnxbuild.core.action import Action
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.decision import Reason
from onnxbuild.core.graph import Graph, Step
from onnxbuild.core.ports import HeldLock, Host

Rank = tuple[bool, bool, int, float, int]

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

    Of the steps that wait, those of the recipe whose longest chain of steps is the shortest come first, so that whole
    recipes are finished early. A step goes before them once its own chain ahead takes as long as all the rest of the
    work on all slots: from then on its recipe would be what the run waits for (decision 0073).

    Args:
        graph: Steps in topological order.
        exclusive: Step name -> whether it runs alone on its host.
        expected_bytes: Name of a ready step -> its expected peak memory.
        expected_s: Step name -> how long it is expected to run.
        callables: Step name -> the user's callables that it calls.
    """

    graph: Graph
    exclusive: Callable[[str], bool]
    expected_bytes: Callable[[str], int]
    expected_s: Callable[[str], float] = lambda name: 1.0  # noqa: ARG005
    callables: Callable[[str], frozenset[str]] = lambda name: frozenset()  # noqa: ARG005
    _called: set[str] = field(default_factory=set)
    _missing: dict[str, int] = field(default_factory=dict)
    _users: dict[str, list[str]] = field(default_factory=dict)
    _ready: deque[str] = field(default_factory=deque)
    _running: dict[str, dict[str, int]] = field(default_factory=dict)
    """Host's name -> steps that run there -> their expected bytes."""
    _order: Mapping[str, int] = field(default_factory=dict)
    _ahead_s: dict[str, float] = field(default_factory=dict)
    _turn: dict[str, int] = field(default_factory=dict)
    """Step name -> which recipe's turn it is in, counted from the recipe with the shortest chain."""
    _left_s: float = 0.0
    _over: set[str] = field(default_factory=set)
    _bytes: dict[str, int] = field(default_factory=dict)
    _left_out: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._order = {name: number for number, name in enumerate(self.graph.steps)}
        for name, step in self.graph.steps.items():
            needs = {ref.step for ref in step.inputs.values()}
            self._missing[name] = len(needs)
            for need in needs:
                self._users.setdefault(need, []).append(name)
        self._ready = deque(name for name, count in self._missing.items() if count == 0)

    def rank(self, name: str) -> Rank:
        """Sorts waiting steps: what runs alone comes last, then recipes by their turn, then the longest chain ahead.

        Before a recipe's turn: a step with a callable that no step has called yet, since a mistake in it
        is better found before an hour of calibration than after.
        """
        group, length = self._group(name), -self._ahead_s[name]
        return (*group, self._turn.get(name, 0), length, self._order[name])

    def length_rank(self, name: str) -> Rank:
        """Sorts waiting steps as `rank` does, but those of all recipes by the chain ahead."""
        return (*self._group(name), 0, -self._ahead_s[name], self._order[name])

    def is_urgent(self, name: str, slots: int) -> bool:
        """Return whether a step's chain takes as long as all that is left to do on all slots."""
        return self._ahead_s[name] * slots >= self._left_s

    def _group(self, name: str) -> tuple[bool, bool]:
        if not self._ahead_s:
            self._look_ahead()
        return self.exclusive(name), self.callables(name) <= self._called

    def _look_ahead(self) -> None:
        """Find each step's chain ahead and each recipe's turn, once steps have to run."""
        spent = {name: self.expected_s(name) for name in self.graph.steps}
        self._left_s = sum(each for name, each in spent.items() if name not in self._over)
        ahead = self._ahead_s
        for name in reversed(list(self.graph.steps)):
            users = self._users.get(name, ())
            ahead[name] = spent[name] + max((ahead[user] for user in users), default=0.0)
        longest: dict[str, float] = {}
        named = [
            (address.recipe, self.graph.resolve(name))
            for name, address in self.graph.addresses.items()
        ]
        named = [
            (recipe, step) for recipe, step in named if step in ahead
        ]  # a part of a graph has all its names
        for recipe, step in named:
            known_s = longest.setdefault(recipe, 0.0)
            if step not in self._over:
                longest[recipe] = max(known_s, ahead[step])
        turns = {recipe: n for n, recipe in enumerate(sorted(longest, key=longest.__getitem__))}
        for recipe, step in named:
            turn = turns[recipe]
            self._turn[step] = min(turn, self._turn.get(step, turn))

    def pop_ready(self) -> str | None:
        """The next step whose inputs are there; it then counts as looked at."""
        return self._ready.popleft() if self._ready else None

    @property
    def has_ready(self) -> bool:
        """Whether a step is ready that was not looked at yet."""
        return bool(self._ready)

    def finish(self, name: str) -> None:
        """The step's outputs are there: what waited for them may be ready."""
        self._end(name)
        self._called |= self.callables(name)
        for user in self._users.get(name, ()):
            self._make_ready(user)

    def _end(self, name: str) -> None:
        for running in self._running.values():
            running.pop(name, None)
        if name not in self._over:
            self._over.add(name)
            if self._ahead_s:
                self._left_s -= self.expected_s(name)

    def _make_ready(self, user: str) -> None:
        """One of the steps that this one waits for has ended."""
        self._missing[user] -= 1
        if self._missing[user] == 0:
            self._ready.append(user)

    def fail(self, name: str) -> list[str]:
        """The step has no outputs; returns all that now can't be built, in graph order."""
        self._end(name)
        blocked: set[str] = set()
        stack = list(self._users.get(name, ()))
        while stack:
            user = stack.pop()
            if user not in blocked and user not in self._left_out:
                blocked.add(user)
                stack += self._users.get(user, ())
        for each in blocked:
            self._end(each)
        return sorted(blocked, key=self._order.__getitem__)

    def leave_out(self, names: Iterable[str]) -> None:
        """Note that these steps have no outputs; steps for which they are optional wait no longer."""
        left = [name for name in names if name not in self._left_out]
        self._left_out.update(left)
        for name in left:
            self._end(name)
        for name in left:
            for user in self._users.get(name, ()):
                if user not in self._left_out:
                    self._make_ready(user)

    def place(self, name: str, hosts: Iterable[Host]) -> Host | None:
        """Return the host that has room for the step and the fewest steps; None if none has room."""
        free = [host for host in hosts if self._has_room(name, host)]
        return min(free, key=lambda host: len(self._running_on(host)), default=None)

    def emptiest(self, hosts: Sequence[Host]) -> Host:
        """Return the host with the most memory that no running step needs."""
        return max(
            hosts, key=lambda each: each.memory_bytes - sum(self._running_on(each).values())
        )

    def is_full(self, hosts: Sequence[Host]) -> bool:
        """Return whether no step may start on any host, whichever it is."""
        return all(self._is_full(host) for host in hosts)

    def start(self, name: str, host: Host) -> None:
        """The step runs now."""
        self._running.setdefault(host.name, {})[name] = self._bytes_of(name)

    def _has_room(self, name: str, host: Host) -> bool:
        running = self._running_on(host)
        if not running:
            return True
        if self._is_full(host) or self.exclusive(name):
            return False
        return sum(running.values()) + self._bytes_of(name) <= host.memory_bytes

    def _is_full(self, host: Host) -> bool:
        running = self._running_on(host)
        return len(running) >= host.jobs or any(map(self.exclusive, running))

    def _running_on(self, host: Host) -> Mapping[str, int]:
        """Steps that run on a host -> their expected bytes."""
        return self._running.get(host.name, {})

    def _bytes_of(self, name: str) -> int:
        if name not in self._bytes:
            self._bytes[name] = self.expected_bytes(name)
        return self._bytes[name]


class WaitingLine:
    """Queue of pending steps, in the order in which the schedule starts them; thousands may wait.

    Ranks only fall while a step waits, so each is looked at again when it comes first, and not before.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._waiting: dict[str, Pending] = {}
        self._new: list[str] = []
        self._by_turn: list[tuple[Rank, str]] = []
        self._by_length: list[tuple[Rank, str]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, pending: Pending) -> None:
        """Let a step wait."""
        self._waiting[pending.step.name] = pending
        self._new.append(pending.step.name)

    def pop(self, slots: int) -> Pending:
        """Take the first out of the line.

        Args:
            slots: Steps that can run at a time.
        """
        schedule = self._schedule
        for name in self._new:
            heapq.heappush(self._by_turn, (schedule.rank(name), name))
            heapq.heappush(self._by_length, (schedule.length_rank(name), name))
        self._new.clear()
        longest = self._first(self._by_length, schedule.length_rank)
        name = (
            longest
            if schedule.is_urgent(longest, slots)
            else self._first(self._by_turn, schedule.rank)
        )
        return self._waiting.pop(name)

    def _first(self, heap: list[tuple[Rank, str]], rank_of: Callable[[str], Rank]) -> str:
        while True:
            rank, name = heap[0]
            if name not in self._waiting:
                heapq.heappop(heap)
            elif (now := rank_of(name)) != rank:
                heapq.heapreplace(heap, (now, name))
            else:
                return name
