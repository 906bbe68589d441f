"""Step kinds that the verbs build with, and what runs them: this package's own, or those of a caller of `run_command`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

    from onnxbuild.building.wiring import Workspace
    from onnxbuild.core.ports import Executor
    from onnxbuild.core.step import StepKind


@dataclass(frozen=True, slots=True)
class Kinds:
    """Step kinds and what runs them; as for `api.build`.

    Attributes:
        catalog: Step kinds by name.
        make_executor: Gives what runs the steps; None for child processes.
    """

    catalog: Mapping[str, StepKind]
    make_executor: Callable[[Workspace], Executor] | None = None


def kinds_of(ctx: click.Context) -> Kinds:
    """Return the kinds that a command was started with."""
    if isinstance(ctx.obj, Kinds):
        return ctx.obj
    from onnxbuild.catalog import CATALOG

    return Kinds(CATALOG)
