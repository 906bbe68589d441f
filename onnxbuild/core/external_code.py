"""Calling code that is not this program's: a model's, a plug-in's, a third party's tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from onnxbuild.core.errors import BuildError


@contextmanager
def external_code(
    blamed: Callable[[BaseException], Exception], *, exits_too: bool = False
) -> Iterator[None]:
    """Run a block of somebody else's code; whatever it raises becomes an error that says whose it is.

    Such code raises anything, `Exception` itself included, and only the caller knows whom to
    blame. BuildErrors, Ctrl-C and a lack of memory pass unchanged.

    Args:
        blamed: Gives the error to raise for what was raised; to let that pass, it raises it.
        exits_too: `sys.exit` and other BaseExceptions are caught too, as at an import.
    """
    try:
        yield
    except (BuildError, MemoryError, KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        if not (exits_too or isinstance(error, Exception)):
            raise
        raise blamed(error) from error


def message_of(error: BaseException) -> str:
    """Return what an exception says, stripped; empty if its own `__str__` raises."""
    try:
        with external_code(_Unspeakable, exits_too=True):
            return str(error).strip()
    except _Unspeakable:
        return ""


class _Unspeakable(Exception):  # noqa: N818 - the error is its argument
    """An exception that can't be shown."""
