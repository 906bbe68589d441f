"""The options that a recipe may write under `session`."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from onnxbuild.core.params import option
from onnxbuild.onnxkit.sessions.settings import SessionSettings

Question = Literal["threads", "spinning", "execution_mode", "memory"]


@dataclass(frozen=True, slots=True)
class TuneOptions:
    """A search for settings that are faster than the recipe's."""

    max_time_s: float = option(
        60.0, help="seconds of measuring, about; a quarter is for proving the winner", minimum=1
    )
    search: tuple[Question, ...] = option(
        ("threads", "spinning", "execution_mode", "memory"), help="what is varied, in this order"
    )


@dataclass(frozen=True, slots=True)
class SessionOptions(SessionSettings):
    """Session settings of a variant, where it is measured and in the bundle's load.py."""

    profiling: bool = option(
        False, help="write ONNX Runtime's profile of the variant next to it (profile.json)"
    )
    tune: bool | TuneOptions = option(
        False,
        help="search threads, spinning, execution mode and memory for what is fastest at "
        "`benchmark.points`; a lock keeps what was found",
    )

    def settings(self) -> SessionSettings:
        """The session's, without what is made of it."""
        names = [each.name for each in dataclasses.fields(SessionSettings)]
        return SessionSettings(**{name: getattr(self, name) for name in names})

    def tuning(self) -> TuneOptions | None:
        """The search; None for none."""
        if isinstance(self.tune, TuneOptions):
            return self.tune
        return TuneOptions() if self.tune else None
