"""Undo what a process inherits of blocked and ignored signals."""

from __future__ import annotations

import signal

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
