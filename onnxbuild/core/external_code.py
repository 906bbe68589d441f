"""Calling code that is not this program's: a model's, a plug-in's, a third party's tool."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from onnxbuild.core.errors import BuildError


@contextmanager
def external_code(
    blamed: Callable[[BaseException], Exception],
    *,
    passing: tuple[type[Exception], ...] = (BuildError, MemoryError),
    exits_too: bool = False,
) -> Iterator[None]:
    """Run a block of somebody else's code; whatever it raises becomes an error that says whose it is.

    Such code raises anything, `Exception` itself included, and only the caller knows whom to
    blame. Ctrl-C always passes.

    Args:
        blamed: Gives the error to raise for what was raised, no RuntimeError, which contextlib takes
            for its own; to let that pass, it raises it.
        passing: What passes unchanged: what is said already, what the machine lacks.
        exits_too: `sys.exit` and other exceptions that are no Exception are blamed, too.
    """
    try:
        yield
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except passing:
        raise
    except BaseException as error:
        if not (exits_too or isinstance(error, Exception)):
            raise
        raise blamed(error) from error


def message_of(error: BaseException) -> str:
    """Return what an exception says, stripped; empty if its own `__str__` raises."""
    try:
        return str(error).strip()
    except BaseException:  # noqa: BLE001 - also called where a process ends: nothing may leave it
        return ""
