"""Refuse sockets by a seccomp filter, for this process and all that it starts.

Landlock refuses TCP alone. The filter allows only pairs between a process and its children, and Unix
stream sockets that are never connected.
"""

from __future__ import annotations

import errno
import socket

from onnxbuild.adapters.kernel import seccomp
from onnxbuild.adapters.kernel.seccomp import (
    ALLOW,
    AND,
    ARCHITECTURE_AT,
    ARGUMENTS_AT,
    AT_LEAST,
    EQUAL,
    LOAD,
    NUMBER_AT,
    RETURN,
    X32,
)

_REFUSE = seccomp.refuse(errno.EACCES)
_FIRST_AT, _SECOND_AT = ARGUMENTS_AT, ARGUMENTS_AT + 8
_TYPE_MASK = 0xF  # the other bits are SOCK_CLOEXEC and SOCK_NONBLOCK


def refuse_sockets() -> bool:
    """Refuse sockets from now on; return False if this kind of machine is not known.

    Raises:
        OSError: The kernel refuses to filter.
    """
    machine = seccomp.this_machine()
    if machine is None:
        return False
    calls = machine.calls
    steps = (
        (LOAD, 0, 0, ARCHITECTURE_AT),
        (EQUAL, 0, 12, machine.architecture),
        (LOAD, 0, 0, NUMBER_AT),
        (AT_LEAST, 10, 0, X32),
        (EQUAL, 3, 0, calls["socket"]),
        (EQUAL, 8, 0, calls["connect"]),
        (EQUAL, 7, 0, calls["io_uring_setup"]),  # it opens sockets past any filter
        (RETURN, 0, 0, ALLOW),
        (LOAD, 0, 0, _FIRST_AT),
        (EQUAL, 0, 4, socket.AF_UNIX),
        (LOAD, 0, 0, _SECOND_AT),
        (AND, 0, 0, _TYPE_MASK),
        (EQUAL, 0, 1, socket.SOCK_STREAM),
        (RETURN, 0, 0, ALLOW),
        (RETURN, 0, 0, _REFUSE),
    )
    seccomp.install(steps)
    return True
