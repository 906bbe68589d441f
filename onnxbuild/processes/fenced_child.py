"""The process that `fenced_call` starts: shuts itself in, then calls one function of this program.

What is called works on files that somebody else made, so the fence is up before their first byte is read.
"""

import contextlib
import ctypes
import glob
import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
from typing import Any

from onnxbuild.adapters.kernel import landlock
from onnxbuild.adapters.kernel.seccomp import refuse_sockets
from onnxbuild.adapters.sandbox.fence import fence_of
from onnxbuild.adapters.toolchain.distributions import site_folders
from onnxbuild.core.errors import BuildError
from onnxbuild.own_folder import OWN_FOLDER
from onnxbuild.processes.signals import reset_signals

VALUE, REFUSED, FAILED = "value", "refused", "failed"
"""Outcome of a call: its value; a BuildError; any other exception."""

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_FOLDERS = {"work": (), "home": ("HOME", "USERPROFILE"), "temp": ("TMPDIR", "TEMP", "TMP")}
"""Folders in the scratch folder -> the variables that name each, on POSIX and on Windows."""
_DEVICES = ("/dev/null", "/dev/nvidia*", "/dev/nvidia-caps/*", "/dev/dri/*", "/dev/kfd")
"""Written to by GPU drivers; no file of anybody's is among them."""


def main() -> None:
    """Answer the call described by the first argument (JSON); the call's own argument is on stdin."""
    reset_signals()
    request = json.loads(sys.argv[1])
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != request["parent"]:
            os._exit(1)  # it died before its death could be reported
    _clear_import_path()
    _settle_in(request["scratch"])
    argument = json.load(sys.stdin)
    with open(
        request["answer"], "wb"
    ) as file:  # its descriptor, or its path, which the fence shuts off
        if request["fenced"]:
            shut_in(request)
        file.write(json.dumps(_answer(sys.argv[2], argument)).encode())
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # nothing of what was loaded gets to run at the end


def shut_in(request: dict[str, Any]) -> None:
    """Let the kernel refuse all but reading software and what was named, and writing to the scratch folder.

    Args:
        request: `scratch`, `readable` and `home` as `fenced_call` writes them.
    """
    scratch = os.path.realpath(request["scratch"])
    if landlock.abi() > 0:
        fence = fence_of(
            project=scratch,
            scratch=scratch,
            inputs=(),
            declared=request["readable"],
            outside=(),
            code=(),
            hidden=(request["home"],),
        )
        devices = (path for pattern in _DEVICES for path in glob.glob(pattern))
        landlock.restrict(
            readable=fence.readable,
            listable=fence.listable,
            writable=(scratch, *devices),
            alone=True,
        )
    with contextlib.suppress(OSError):  # a kernel without filters
        refuse_sockets()


def _answer(name: str, argument: Any) -> dict[str, Any]:
    module, _, function = name.partition(":")
    try:
        value = getattr(importlib.import_module(module), function)(argument)
        return {VALUE: json.loads(json.dumps(value, allow_nan=False))}
    except BuildError as error:
        traceback.print_exc()
        return {REFUSED: [error.what, error.where, error.fix]}
    except BaseException as error:  # noqa: BLE001 - the process's edge: all else is reported
        traceback.print_exc()
        lines = str(error).strip().splitlines()
        return {FAILED: f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__}


def _clear_import_path() -> None:
    """Import installed software alone; this program is imported already, wherever it is."""
    parent = os.path.dirname(OWN_FOLDER)
    own = set() if os.path.realpath(parent) in site_folders() else {parent}
    sys.path[:] = [path for path in sys.path if path not in {"", os.getcwd(), *own}]


def _settle_in(scratch: str) -> None:
    """Work, be at home and make temporary files in the scratch folder; leave no core there."""
    with contextlib.suppress(ImportError):  # Windows: it writes no core
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.umask(0o077)
    for name, variables in _FOLDERS.items():
        folder = os.path.join(scratch, name)
        os.mkdir(folder)
        os.environ.update(dict.fromkeys(variables, folder))
    os.chdir(os.path.join(scratch, "work"))
    tempfile.tempdir = None  # look again
