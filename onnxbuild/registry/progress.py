"""Show how far a transfer is, on standard error: a bar on a terminal; elsewhere a line now and then."""

from collections.abc import Callable
from typing import TextIO

from onnxbuild.adapters.console.meter import Meter, bar, size
from onnxbuild.adapters.console.wrap import output_width
from onnxbuild.core.event import BYTES, StepProgress

_LARGE_BYTES = 1 << 20
_EVERY_S, _EVERY_S_ON_A_TERMINAL = 30.0, 0.2
_CLEAR = "\r\x1b[K"
_LONGEST_NAME = 24
_USUAL_WIDTH = 80


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
        """
        last_s = self._now()
        every_s = _EVERY_S_ON_A_TERMINAL if self._is_terminal else _EVERY_S
        meter = Meter()
        meter.take(StepProgress(name, 0, size_bytes, BYTES), last_s)

        def report(done_bytes: int) -> None:
            nonlocal last_s
            now_s = self._now()
            is_end = done_bytes >= size_bytes >= _LARGE_BYTES
            if self._stream is None or not (is_end or now_s - last_s >= every_s):
                return
            last_s = now_s
            if is_end:
                text = f"{verb:9}{name}  {size(size_bytes)}"
                self._stream.write(f"{_CLEAR if self._is_terminal else ''}{text}\n")
            else:
                meter.take(StepProgress(name, done_bytes, size_bytes, BYTES), now_s)
                self._say(verb, name, meter, now_s)
            self._stream.flush()

        return report

    def _say(self, verb: str, name: str, meter: Meter, now_s: float) -> None:
        assert self._stream is not None
        if not self._is_terminal:
            self._stream.write(f"{verb:9}{name}  {meter.words(now_s)}\n")
            return
        short = name if len(name) <= _LONGEST_NAME else f"...{name[3 - _LONGEST_NAME :]}"
        drawn = bar(meter.last.done, meter.last.total, cells=8)
        width = output_width(err=True) or _USUAL_WIDTH
        self._stream.write(f"{_CLEAR}{f'{verb:9}{short} {drawn} {meter.words(now_s)}'[:width]}")


def as_size(size_bytes: int) -> str:
    """Return a size for people: `12 bytes`, `32.6 KiB`, `90.4 MiB`."""
    return size(size_bytes)
