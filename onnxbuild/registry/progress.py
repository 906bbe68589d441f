"""How a transfer goes on, on standard error: a line for each large blob, and while it takes long."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

_LARGE_BYTES = 1 << 20
_EVERY_S, _EVERY_S_ON_A_TERMINAL = 5.0, 0.2
_CLEAR = "\r\x1b[K"


class Progress:
    """Prints what is sent or fetched.

    Args:
        stream: Where to; None to print nothing.
        monotonic_s: Gives seconds since some moment.
    """

    def __init__(self, stream: TextIO | None, monotonic_s: Callable[[], float]) -> None:
        self._stream, self._now = stream, monotonic_s
        self._is_terminal = stream is not None and stream.isatty()

    def blob(self, verb: str, name: str, size_bytes: int) -> Callable[[int], None]:
        """Return what takes the bytes done so far of one blob.

        Args:
            verb: `sending`, `fetching`.
            name: The file's.
            size_bytes: All of it.
        """
        last_s = self._now()
        every_s = _EVERY_S_ON_A_TERMINAL if self._is_terminal else _EVERY_S

        def report(done_bytes: int) -> None:
            nonlocal last_s
            is_end = done_bytes >= size_bytes >= _LARGE_BYTES
            if self._stream is None or not (is_end or self._now() - last_s >= every_s):
                return
            last_s = self._now()
            share = f"{done_bytes / max(size_bytes, 1):.0%}"
            text = f"{verb:9}{name}  {share} of {as_size(size_bytes)}"
            if self._is_terminal:
                self._stream.write(f"{_CLEAR}{text}" + ("\n" if is_end else ""))
            else:
                self._stream.write(f"{text}\n")
            self._stream.flush()

        return report


def as_size(size_bytes: int) -> str:
    """Return a size for people: `12 bytes`, `32.6 KiB`, `90.4 MiB`."""
    if size_bytes < 1 << 10:
        return f"{size_bytes} bytes"
    for unit, size in (("KiB", 1 << 10), ("MiB", 1 << 20)):
        if size_bytes < size << 10:
            return f"{size_bytes / size:.1f} {unit}"
    return f"{size_bytes / (1 << 30):.1f} GiB"
