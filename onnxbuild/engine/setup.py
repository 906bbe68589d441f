"""Setup of a build: the outside world, and how to build in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.graph import StepAddress
from onnxbuild.core.ports import (
    Clock,
    EventSink,
    Executor,
    Fingerprints,
    Guard,
    History,
    Store,
    Views,
)
from onnxbuild.core.step import StepKind
from onnxbuild.engine.schedule import Limits


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything outside that a build touches."""

    store: Store
    fingerprints: Fingerprints
    executor: Executor
    history: History
    views: Views
    events: EventSink
    clock: Clock


@dataclass(slots=True)
class Setup:
    """Setup for building graphs.

    Args:
        catalog: Step kinds by name.
        ports: The outside world.
        limits: What steps share.
        keep_going: After a failure, still build what does not depend on it.
        log_of: Where a step stands -> the file its output goes to.
        guard: May refuse steps; None where nobody does.
        forced: Names of steps that run although they are up to date.
    """

    catalog: Mapping[str, StepKind]
    ports: Ports
    limits: Limits
    keep_going: bool
    log_of: Callable[[StepAddress], Path]
    guard: Guard | None = None
    forced: frozenset[str] = frozenset()
