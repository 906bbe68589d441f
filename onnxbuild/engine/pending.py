"""A step that has to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from onnxbuild.core.action import Action
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.decision import Reason
from onnxbuild.core.graph import Step
from onnxbuild.core.ports import HeldLock


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
