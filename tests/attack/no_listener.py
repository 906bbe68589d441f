"""Processes that the kernel can't observe, as in some containers."""

import errno
import platform

from onnxbuild.adapters.kernel import seccomp
from onnxbuild.adapters.kernel.seccomp import (
    ALLOW,
    ANY_BIT,
    ARGUMENTS_AT,
    EQUAL,
    LOAD,
    NUMBER_AT,
    RETURN,
)

_SECCOMP = {"x86_64": 317, "aarch64": 277}
_NEW_LISTENER = 1 << 3


def refuse_listeners() -> None:
    """Refuse filters that report calls; for a child, before it starts its program."""
    seccomp.install(
        (
            (LOAD, 0, 0, NUMBER_AT),
            (EQUAL, 0, 3, _SECCOMP[platform.machine()]),
            (LOAD, 0, 0, ARGUMENTS_AT + 8),
            (ANY_BIT, 0, 1, _NEW_LISTENER),
            (RETURN, 0, 0, seccomp.refuse(errno.EPERM)),
            (RETURN, 0, 0, ALLOW),
        )
    )
