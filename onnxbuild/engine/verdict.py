"""A verdict that fails, as the error that the run ends with."""

from __future__ import annotations

from collections.abc import Sequence

from onnxbuild.core.errors import EXIT_GATE, BuildError
from onnxbuild.core.step import Finding


def gate_error(step: str, findings: Sequence[Finding]) -> BuildError | None:
    """The first breach, and how many more there are; None if there is none."""
    if not findings:
        return None
    first, more = findings[0], len(findings) - 1
    what = first.what + (f" (and {more} more)" if more else "")
    error = BuildError(what, where=first.where or step, fix=first.fix)
    error.exit_code = EXIT_GATE
    return error
