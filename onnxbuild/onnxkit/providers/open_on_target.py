"""Sessions on a target, and an honest way out where it is not there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.step import REPORT_FILE, Outcome, StepContext
from onnxbuild.core.target import Target
from onnxbuild.onnxkit.host.fork_call import call_forked
from onnxbuild.onnxkit.providers.placement import Placement, placement_of
from onnxbuild.onnxkit.reports import write_report
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.settings import STEADY, SessionSettings

if TYPE_CHECKING:
    import onnxruntime

TARGET_INPUT = "target"
"""The input of a step that holds what the step `provider` found; a target that is the CPU has none."""


class NotOnTargetError(Exception):
    """The target is there, and none of the model would run on it; the message says so."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A session, and which of its nodes went where."""

    session: onnxruntime.InferenceSession
    placement: Placement | None


class ContextSubset:
    """A step's context without some of its inputs: those that do not run on its target.

    Args:
        names: Inputs that are left out.
    """

    def __init__(self, whole: StepContext, names: frozenset[str]) -> None:
        self._whole = whole
        self._names = names
        self.params: Any = whole.params
        self.where = whole.where

    @property
    def memory_bytes(self) -> int:
        """The step's."""
        return self._whole.memory_bytes

    @property
    def scratch(self) -> Path:
        """The step's."""
        return self._whole.scratch

    @property
    def input_names(self) -> tuple[str, ...]:
        """The step's, without those."""
        return tuple(name for name in self._whole.input_names if name not in self._names)

    def input(self, name: str) -> Path:
        """The folder of an input artifact."""
        return self._whole.input(name)

    def output(self, name: str) -> Path:
        """The folder of an output artifact."""
        return self._whole.output(name)

    def load(self, entrypoint: Entrypoint) -> Callable[..., Any]:
        """Import the user's callable, with the step's own rules."""
        return self._whole.load(entrypoint)

    def code(self, entrypoint: Entrypoint) -> tuple[str, list[str]]:
        """Return where to import a callable from, as `StepContext.code` does."""
        return self._whole.code(entrypoint)

    def place(self, name: str) -> Path | None:
        """The folder of a member of the kind's toolchain."""
        return self._whole.place(name)

    def files(self, entrypoint: Entrypoint) -> tuple[tuple[str, Path], ...]:
        """The declared files: name, place."""
        return self._whole.files(entrypoint)

    def progress(self, done: float, total: float = 0, unit: str = "", note: str = "") -> None:
        """Report how far the step is."""
        self._whole.progress(done, total, unit, note)


def absence(context: StepContext) -> str:
    """Return why the step's target is not there; empty if it is."""
    return str(_presence(context).get("absent", ""))


def open_on(
    context: StepContext, model: Path, target: Target, settings: SessionSettings = STEADY
) -> Opened:
    """Open a model on those providers of a target that load.

    Args:
        target: Where it is to run; `absence` has said that it is there.

    Raises:
        NotOnTargetError: ONNX Runtime leaves all its nodes to the CPU, and the target does not say
            that it may.
        StepError: The model is refused.
    """
    session = open_session(
        model,
        target=usable(context, target),
        library=library_of(context, target),
        settings=settings,
        where=context.where,
    )
    placement = placement_of(session)
    if (
        placement is not None
        and placement.total
        and not placement.coverage(target)
        and not target.falls_back
    ):
        raise NotOnTargetError(
            f"'{target.name}' loads, and runs none of the model's {placement.total} nodes: "
            f"all are on {', '.join(placement.nodes)}"
        )
    return Opened(session, placement)


def left_out(context: StepContext, models: Mapping[str, Path], target: Target) -> dict[str, str]:
    """Return which models a target runs no node of, each with the sentence that says so.

    Args:
        models: Name -> the model's folder.
        target: Where they are to run. Each is opened there, in a process of its own: a device's
            library must not be loaded before a process forks off.
    """
    if target.is_cpu or target.falls_back:
        return {}

    def reason(folder: Path) -> str:
        try:
            open_on(context, folder, target)
        except NotOnTargetError as error:
            return str(error)
        return ""

    found = {
        name: call_forked(lambda folder=folder: reason(folder), f"model '{name}'", context.where)  # type: ignore[misc]
        for name, folder in models.items()
    }
    return {name: why for name, why in found.items() if why}


def usable(context: StepContext, target: Target) -> Target:
    """The target without those providers of its chain that do not load."""
    loads = _presence(context).get("loads")
    if loads is None:
        return target
    return replace(target, chain=tuple(link for link in target.chain if link.provider in loads))


def environment_note(context: StepContext) -> dict[str, Any]:
    """Return what a report says of the target's environment; nothing where it has none."""
    found = _presence(context).get("environment")
    return {} if found is None else {"environment": found}


def library_of(context: StepContext, target: Target) -> Path | None:
    """Return where a target's plug-in is; None if it has none."""
    if target.library is None:
        return None
    ((_, path),) = context.files(target.library)
    return path


def skipped(
    context: StepContext, target: Target, reason: str, more: Mapping[str, Any] | None = None
) -> Outcome:
    """Return what a step says that could not run on its target: a report with nothing but the reason.

    Args:
        target: The one that is not there.
        reason: From `absence`, or of a NotOnTargetError.
        more: What readers of the report look for in any case.
    """
    report = {"provider": target.name, "skipped": reason, **(more or {})}
    write_report(context.output("report"), report)
    return Outcome(metrics={"target": target.name, "skipped": reason})


def _presence(context: StepContext) -> dict[str, Any]:
    """Return the report of the step `provider`; empty if the target needs none."""
    if TARGET_INPUT not in context.input_names:
        return {}
    text = (context.input(TARGET_INPUT) / REPORT_FILE).read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
