"""Choose where steps run: the option `--executor` of the verbs that build."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onnxbuild.adapters import locate
from onnxbuild.cli.options import Decorator
from onnxbuild.settings import read_settings

if TYPE_CHECKING:
    from onnxbuild.building.wiring import RunOptions, Workspace
    from onnxbuild.core.ports import EventSink, Executor


def executor_option() -> Decorator:
    """Steps elsewhere."""
    return click.option(
        "--executor",
        metavar="WHERE",
        help="Where steps run: local (this machine's own processes), dask://HOST:PORT (the workers of a "
        "cluster), dask:local?workers=N or slurm:PARTITION [default: `executor` of `[tool.onnxbuild]`, else local].",
    )


def executor_of(
    project: Path, text: str | None, options: RunOptions, events: EventSink
) -> Callable[[Workspace], Executor] | None:
    """Return what makes the executor that is asked for; None for this machine's own processes.

    Args:
        text: Of `--executor`; None where the settings decide.
        events: Takes notices.

    Raises:
        UsageError: There is no such executor.
    """
    from onnxbuild.cluster.addresses import LOCAL, read_executor

    where = ""
    if text is None:
        settings = read_settings(project, locate.environment())
        text, where = settings.text("executor") or LOCAL, settings.sources.get("executor", "")
    cluster = read_executor(text, where)
    if cluster is None:
        return None

    def make(workspace: Workspace) -> Executor:
        from onnxbuild.cluster.connect import connected
        from onnxbuild.core.event import Notice

        return connected(
            cluster, workspace, jobs=options.jobs, memory_bytes=options.memory_bytes,
            timeout_s=options.timeout_s, say=lambda text: events.emit(Notice(text)),
        )  # fmt: skip

    return make
