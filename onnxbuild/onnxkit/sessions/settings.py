"""Settings of a session: those that can change numbers, and those that change nothing but time."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from onnxbuild.core.params import from_json, option, to_json

TUNED = (
    "intra_op_threads", "inter_op_threads", "spinning", "execution_mode", "cpu_arena",
    "memory_pattern",
)  # fmt: skip
"""The settings that change nothing but time and memory: those that `tune` searches."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """Settings of a variant's ONNX Runtime session; what is left out is as ONNX Runtime has it."""

    graph_optimization: Literal["disable", "basic", "extended", "all"] = option(
        "all", help="graph optimizations at load time; `all` includes those for this CPU"
    )
    execution_mode: Literal["sequential", "parallel"] = option(
        "sequential",
        help="whether operators that don't wait for each other run side by side, on "
        "`inter_op_threads`",
    )
    intra_op_threads: int = option(
        0, help="threads within an operator; 0: one for each core", minimum=0
    )
    inter_op_threads: int = option(
        0,
        help="threads across operators, where they run in parallel; 0: one for each core",
        minimum=0,
    )
    spinning: Literal["allow", "stop", "never"] = option(
        "allow",
        help="idle threads: `allow` spins, also for some 35 ms after a run; `stop` "
        "ends spinning with the run; `never` sleeps at once",
    )
    memory_pattern: bool = option(
        True, help="plan the memory of all activations at once, for each shape of the inputs"
    )
    cpu_arena: bool = option(True, help="keep the memory of a run for the next")
    deterministic_compute: bool = option(
        False, help="use only kernels with the same result in every run"
    )
    free_dimensions: dict[str, int] = field(
        default_factory=dict,
        metadata={
            "help": "axis of `dynamic_axes` -> the one size that the session takes, known when it "
            "fuses the graph",
            "minimum": 1,
        },
    )
    config: dict[str, str | int] = field(
        default_factory=dict,
        metadata={"help": "additional session config entries of ONNX Runtime: key -> value"},
    )

    @property
    def spins(self) -> bool:
        """Whether threads may go on spinning when a run is over."""
        alone = self.intra_op_threads == 1 and self.execution_mode == "sequential"
        return self.spinning == "allow" and not alone

    def judged(self) -> SessionSettings:
        """Return settings for gates: what can change numbers, on one thread, for equal reports."""
        return dataclasses.replace(
            self,
            intra_op_threads=1,
            inter_op_threads=1,
            spinning="allow",
            memory_pattern=True,
            cpu_arena=True,
            deterministic_compute=True,
        )

    def judged_anywhere(self) -> SessionSettings:
        """Return settings as `judged` does, without fixed axis sizes, for the user's own data."""
        return dataclasses.replace(self.judged(), free_dimensions={})

    def threaded(self, threads: int) -> SessionSettings:
        """Return settings with a number of intra-op threads, if they leave that open."""
        return dataclasses.replace(self, intra_op_threads=self.intra_op_threads or threads)

    def tuned_text(self) -> str:
        """The settings of TUNED as JSON: what a lock records."""
        return json.dumps({name: getattr(self, name) for name in TUNED})

    def with_tuned(self, text: str) -> SessionSettings:
        """Return these settings with those of TUNED as `tuned_text` has written them.

        Raises:
            ValueError: It is no such text.
        """
        parsed = json.loads(text)
        if not isinstance(parsed, dict) or set(parsed) != set(TUNED):
            raise ValueError(f"found {text}; expected the keys {', '.join(TUNED)}")
        return from_json(SessionSettings, {**to_json(self), **parsed})


STEADY = SessionSettings().judged()
"""One thread, the same sums each time."""


def settings_from(value: Any) -> SessionSettings:
    """Read settings that `to_json` has written.

    Raises:
        ValueError: It is something else.
    """
    return from_json(SessionSettings, value, "session")


def shown(settings: SessionSettings, base: SessionSettings | None = None) -> str:
    """Return what differs from other settings (None: ONNX Runtime's own), as YAML to paste."""
    other = SessionSettings() if base is None else base
    parts = [
        f"{each.name}: {_yaml(getattr(settings, each.name))}"
        for each in dataclasses.fields(settings)
        if getattr(settings, each.name) != getattr(other, each.name)
    ]
    return f"{{{', '.join(parts)}}}"


def _yaml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key}: {_yaml(each)}' for key, each in value.items())}}}"
    return str(value)
