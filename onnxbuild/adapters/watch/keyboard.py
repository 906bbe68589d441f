"""Keys as they are pressed, where standard input is a terminal."""

import contextlib
import os
import select
import sys
from typing import Any, Self


class Keyboard:
    """Reads keys without Enter while it is entered; Ctrl-C stays what it is."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    def __enter__(self) -> Self:
        with contextlib.suppress(ImportError, OSError, ValueError):
            import termios
            import tty

            number = sys.stdin.fileno()
            # of a background job, which the terminal would stop for asking
            if sys.stdin.isatty() and os.getpgrp() == os.tcgetpgrp(number):
                self._before = termios.tcgetattr(number)
                tty.setcbreak(number)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            import termios

            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)
            self._before = None

    def pressed(self) -> str:
        """Return what was pressed since this was last asked."""
        if self._before is None:
            return ""
        number = sys.stdin.fileno()
        if not select.select([number], [], [], 0)[0]:
            return ""
        return os.read(number, 64).decode("utf-8", "replace")
