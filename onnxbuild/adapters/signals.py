"""Signals as a process finds them when nothing is inherited from whoever started it."""

from __future__ import annotations

import signal

_IGNORED_BY_PYTHON = frozenset({signal.SIGPIPE, signal.SIGXFSZ})


def unblock_signals() -> None:
    """Take all signals in, and the ends of children.

    Launchers leave signals blocked (the mask is inherited), or SIGCHLD ignored: then nobody learns
    that a child has ended, and every exit status reads 0.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if signal.getsignal(signal.SIGCHLD) is signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def reset_signals() -> None:
    """Unblock all, and give each its default, as for a program that a shell starts."""
    unblock_signals()
    for number in signal.valid_signals() - _IGNORED_BY_PYTHON:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
