"""Calling code that is not this program's: a model's, a plug-in's, a third party's tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from onnxbuild.core.errors import BuildError

PASSING = (BuildError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit)
"""What is said already, what the machine lacks, and what ends the process."""


@contextmanager
def external_code(
    blamed: Callable[[BaseException], Exception],
    *,
    passing: tuple[type[BaseException], ...] = PASSING,
) -> Iterator[None]:
    """Run a block of somebody else's code; whatever it raises becomes an error that says whose it is.

    Such code raises anything, `Exception` itself included, and only the caller knows whom to
    blame.

    Args:
        blamed: Gives the error to raise for what was raised, no RuntimeError, which contextlib takes
            for its own; to let that pass, it raises it.
        passing: What passes unchanged.
    """
    try:
        yield
    except passing:
        raise
    except BaseException as error:
        raise blamed(error) from error


def message_of(error: BaseException) -> str:
    """Return what an exception says, stripped; empty if its own `__str__` raises."""
    try:
        return str(error).strip()
    except BaseException:  # noqa: BLE001 - also called where a process ends: nothing may leave it
        return ""
