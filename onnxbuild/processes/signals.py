"""Undo what a process inherits of blocked and ignored signals; end on those that ask for it, whenever they come."""

from __future__ import annotations

import signal
import sys

TYPE_CHECKING = False  # as in typing, which takes longer to import than most of a short command
if TYPE_CHECKING:
    from types import FrameType
    from typing import Any

_PAUSE_S = 0.05
"""Time until a lost signal is raised again: a callback is over by then."""
_ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
_IGNORED_BY_PYTHON = frozenset(
    getattr(signal, name) for name in ("SIGPIPE", "SIGXFSZ") if hasattr(signal, name)
)


def unblock_signals() -> None:
    """Unblock all signals, and give SIGCHLD its default.

    Some launchers leave signals blocked (the mask is inherited), or SIGCHLD ignored. With the latter
    the end of a child is not reported, and every exit status reads 0.
    """
    if not hasattr(signal, "pthread_sigmask"):
        return  # Windows has no masks, and no SIGCHLD
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def reset_signals() -> None:
    """Unblock all signals, and give each its default, as a shell does for a program."""
    unblock_signals()
    for number in signal.valid_signals() - _IGNORED_BY_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def end_on_signals() -> None:
    """Have SIGTERM and SIGHUP end this process as Ctrl-C does: children stop, finished steps are kept.

    None of the three is lost: Python drops what a signal raises while a weak reference's callback or a `__del__` runs,
    as imports run them all the time. It is raised again, in place of the traceback that Python prints.
    """
    for number in _ENDING:
        if signal.getsignal(number) is signal.SIG_DFL:  # `nohup` has the second ignored
            signal.signal(number, _end)
    if hasattr(signal, "setitimer"):
        sys.unraisablehook = _raise_again


def _end(number: int, frame: FrameType | None) -> None:
    del frame
    sys.exit(128 + number)


def _raise_again(dropped: Any) -> None:
    """Take what Python drops, see `sys.unraisablehook`: if a signal raised it, raise that signal a moment later."""
    error = dropped.exc_value
    code = error.code if isinstance(error, SystemExit) else None
    raised_by = [each for each in _ENDING if code == 128 + each]
    if isinstance(error, KeyboardInterrupt):
        raised_by = [signal.SIGINT]
    if not raised_by:
        sys.__unraisablehook__(dropped)
        return
    signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(raised_by[0]))
    signal.setitimer(signal.ITIMER_REAL, _PAUSE_S)
