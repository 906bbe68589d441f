"""Declaration of the step that measures a recipe's variants side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SideBySide:
    """A step that measures the latency of all variants, one step for each target.

    Releases take their latencies from its report, `diagnose` the cost of a remedy.

    Attributes:
        kind: The step kind; its inputs `model/VARIANT` are the variants' models, and its report is one of
            onnxkit/benchmark/report.py.
        alone: Settings that leave out everything but the variants, as `--set` takes them.
    """

    kind: str
    alone: Mapping[str, str] = field(default_factory=dict)
