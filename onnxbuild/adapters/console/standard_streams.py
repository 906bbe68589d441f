"""Use standard input, output and error even if they are closed, full, or of another encoding."""

import codecs
import os
import select
import sys
from collections.abc import Callable

_OUTPUTS = (1, 2)
_FIRST_BYTE, _LAST_BYTE = (
    "\udc80",
    "\udcff",
)  # PEP 383: bytes 0x80 to 0xff of names that are no text
_READABLE = "onnxbuild.readable"  # the name of an error handler of codecs


def open_standard_streams() -> None:
    r"""Make all three streams usable, whatever the process was started with.

    A closed one becomes /dev/null; else the next file that is opened would take its number. A character
    that an output can't encode, such as one of a file name that is not UTF-8, is shown as \xNN or \uNNNN.
    """
    codecs.register_error(_READABLE, _shown)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "r" if name == "stdin" else "w"
            stream = open(os.devnull, mode, encoding="utf-8")  # noqa: SIM115 - stays open
            if stream.fileno() != number:
                os.dup2(stream.fileno(), number)
            setattr(sys, name, stream)
        if number in _OUTPUTS:
            getattr(sys, name).reconfigure(errors=_READABLE)


def columns() -> int:
    """Return how many characters a line of standard output takes: COLUMNS, the terminal's, or 80."""
    given = os.environ.get("COLUMNS", "")
    if given.isdigit() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:
        return 80


def is_pipe_closed() -> bool:
    """Return whether standard output or standard error is a pipe that nobody reads."""
    poll = select.poll()
    for number in _OUTPUTS:
        poll.register(number, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def discard_output() -> None:
    """Discard buffered output: Python would fail to write it at exit, and print an error."""
    null = os.open(os.devnull, os.O_WRONLY)
    for number in _OUTPUTS:
        os.dup2(null, number)
    os.close(null)


def say_on_stderr(say: Callable[[], None]) -> None:
    """Call a function that prints an error; if the output is full, print nothing.

    Raises:
        BrokenPipeError: The output is a pipe that nobody reads.
    """
    try:
        say()
    except BrokenPipeError:
        raise
    except OSError:
        discard_output()


def _shown(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return "".join(map(_as_ascii, error.object[error.start : error.end])), error.end


def _as_ascii(character: str) -> str:
    if _FIRST_BYTE <= character <= _LAST_BYTE:
        return f"\\x{ord(character) - ord(_FIRST_BYTE) + 0x80:02x}"
    return character.encode("ascii", "backslashreplace").decode("ascii")
