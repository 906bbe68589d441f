"""The fork server's side of observing steps: it is asked about each file that any process of a step opens.

It notes the path, with the file's state at that moment, and lets the call go on. A program that changes
the path between the two would deceive it; that takes intent, and the fence is none against malice.
Being the ancestor of all that steps start, it may read their memory also where Yama restricts that.
"""

import ctypes
import errno
import json
import os
import re
import socket
import sys
from pathlib import Path
from typing import Any

from onnxbuild.adapters.kernel import seccomp
from onnxbuild.adapters.kernel.kernel_watch import RemoteMemory
from onnxbuild.adapters.kernel.seccomp import Call, Listener
from onnxbuild.adapters.observe.access_log import Access, AccessLog

ADOPTION = "adopted"
"""A fork of a step's process that looks for this file in the job's folder is as the step itself."""

WATCH_FILE, SEEN_FILE = "watch.json", "seen.json"
"""Files in a job's folder: the arguments of its `AccessLog`, and their state at the end."""

_HERE = -100  # AT_FDCWD
_NO_FOLLOW = 0x100  # AT_SYMLINK_NOFOLLOW
_CREATES = os.O_CREAT
_WRITES = os.O_WRONLY | os.O_RDWR
_PATH_ONLY = getattr(os, "O_PATH", 0)
_SOCKET_ADDRESS_BYTES = 110
_MAGIC = re.compile(
    r"(/proc/(?P<process>self|thread-self|\d+)(/task/\d+)?/(?P<link>cwd|root|fd/\d+)"
    r"|/dev/fd/(?P<number>\d+)|/dev/(?P<name>stdin|stdout|stderr))(?P<rest>(/.*)?)$"
)
_STANDARD = {"stdin": "0", "stdout": "1", "stderr": "2"}
_FIRST = frozenset({"open", "creat", "execve", "readlink", "stat", "lstat", "access", "mkdir"})
"""Calls whose path is the first argument; the others have a folder's descriptor before it."""


def connected() -> tuple[socket.socket, socket.socket]:
    """Return a pair of sockets: for the fork server, for a step."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


class Supervisor:
    """Observes one step.

    Args:
        connection: The fork server's end of `connected`.

    Attributes:
        closed: Whether `close` was called: nothing more can be asked.
    """

    def __init__(self, folder: Path, pid: int, connection: socket.socket) -> None:
        self._folder = folder
        self._connection = connection
        self._listener: Listener | None = None
        self.closed = False
        self._memory = RemoteMemory()
        machine = seccomp.this_machine()
        self._names = {} if machine is None else {n: name for name, n in machine.calls.items()}
        self._accesses: AccessLog | None = None
        self._groups: dict[int, int] = {}
        self._own = {pid}
        self._adoption = os.path.join(os.path.realpath(folder), ADOPTION)

    def fileno(self) -> int:
        """Return what is readable when there is something to do."""
        return self._connection.fileno() if self._listener is None else self._listener.fileno()

    @property
    def started(self) -> bool:
        """Whether the step has sent its listener."""
        return self._listener is not None

    def start(self) -> bool:
        """Take the listener that the step has sent; return whether there is one."""
        try:
            _, descriptors, _, _ = socket.recv_fds(self._connection, 1, 1)
        except OSError:
            descriptors = []
        if not descriptors:
            return False
        self._accesses = AccessLog(**json.loads((self._folder / WATCH_FILE).read_bytes()))
        self._listener = Listener(descriptors[0])
        return True

    def serve(self) -> bool:
        """Answer one call; return whether more may come."""
        assert self._listener is not None
        try:
            call = self._listener.receive()
        except OSError:
            return False  # all its processes have ended
        if call is not None:
            self._listener.answer(call, self._verdict(call))
        return True

    def result(self) -> dict[str, Any] | None:
        """Return what was seen, as JSON; None if the kernel did not observe the step."""
        return None if self._accesses is None else self._accesses.to_json()

    def close(self) -> None:
        """Let go of the descriptors."""
        self.closed = True
        self._connection.close()
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    # --- calls --------------------------------------------------------------------------------------

    def _verdict(self, call: Call) -> int:
        """Note a call; return the error number that it is to fail with, 0 to go on."""
        assert self._accesses is not None
        name = self._names.get(call.number, "")
        arguments = call.arguments
        at = 0 if name in _FIRST or name == "bind" else 1
        is_socket = name == "bind"
        raw = (
            self._socket_path(call) if is_socket else self._memory.path(call.thread, arguments[at])
        )
        if not raw:
            # The kernel refuses a path that can't be read, and knows what an empty one is. What nobody
            # may look into opens nothing: it would go unseen.
            return errno.EACCES if self._memory.refused else 0
        access, follows = self._access(name, call)
        if access is Access.READ and raw == b"." and self._is_held(name, call):
            access = Access.HOLD
        path = os.fsdecode(raw)
        if not path.startswith("/"):
            base = _folder_of(call.thread, _HERE if at == 0 else _signed(arguments[0]))
            if base is None:
                return 0
            path = f"{base}/{path}"
        path = _meant(path, call.thread)
        if path == self._adoption:
            self._own.add(_group_of(call.thread))
            return 0
        return self._accesses.note(
            path,
            access,
            follows=follows,
            by_step=self._is_main(call.thread),
            who=lambda: _program(call.thread),
        )

    def _access(self, name: str, call: Call) -> tuple[Access, bool]:
        """Return how a call accesses its path, and whether it follows a link at the path's end."""
        arguments = call.arguments
        if name in {"execve", "execveat"}:
            return Access.EXECUTE, True
        if name in {"readlink", "readlinkat", "lstat"}:
            return Access.LOOK, False
        if name in {"mkdir", "mkdirat", "bind"}:
            return Access.CREATE_NEW, False
        if name in {"stat", "access"}:
            return Access.LOOK, True
        if name in {"newfstatat", "faccessat2"}:
            return Access.LOOK, not arguments[3] & _NO_FOLLOW
        if name == "statx":
            return Access.LOOK, not arguments[2] & _NO_FOLLOW
        if name == "faccessat":
            return Access.LOOK, True
        return _opened(self._flags(name, call))

    def _is_held(self, name: str, call: Call) -> bool:
        """Return whether a folder is opened to come back to it: GNU find does so with the one that it starts in.

        It lists folders by other descriptors, opened with O_DIRECTORY. Source: gnulib, save-cwd.c.
        """
        return not self._flags(name, call) & os.O_DIRECTORY and _program(call.thread) == "find"

    def _flags(self, name: str, call: Call) -> int:
        if name == "creat":
            return os.O_CREAT | os.O_WRONLY | os.O_TRUNC
        if name == "openat2":
            how = self._memory.bytes(call.thread, call.arguments[2], 8)
            return 0 if how is None else int.from_bytes(how, "little")
        return call.arguments[1 if name == "open" else 2] & 0xFFFFFFFF

    def _socket_path(self, call: Call) -> bytes:
        """Return the path that a socket is to have; empty if it has none. Source: unix(7)."""
        size = min(call.arguments[2] & 0xFFFFFFFF, _SOCKET_ADDRESS_BYTES)
        raw = self._memory.bytes(call.thread, call.arguments[1], size)
        if raw is None or int.from_bytes(raw[:2], sys.byteorder) != socket.AF_UNIX:
            return b""
        return raw[2:].partition(b"\0")[0]

    def _is_main(self, thread: int) -> bool:
        """Return whether a thread is one of the step's own process, or of a fork that reports to it."""
        if thread in self._own:
            return True
        group = self._groups.get(thread)
        if group is None:
            group = self._groups[thread] = _group_of(thread)
        return group in self._own


def _signed(argument: int) -> int:
    """A descriptor as the C type has it."""
    return ctypes.c_int(argument & 0xFFFFFFFF).value


def _opened(flags: int) -> tuple[Access, bool]:
    follows = not flags & os.O_NOFOLLOW
    if flags & _PATH_ONLY:
        return Access.HOLD, follows
    if flags & _CREATES and flags & os.O_EXCL:
        return Access.CREATE_NEW, False
    if flags & _CREATES and flags & os.O_RDWR and not flags & os.O_TRUNC:
        return Access.UPDATE_OR_CREATE, follows
    if flags & os.O_TRUNC or (flags & _CREATES and flags & _WRITES):
        return Access.CREATE if flags & _CREATES else Access.WRITE, follows
    return (Access.UPDATE if flags & _WRITES else Access.READ), follows


def _folder_of(thread: int, descriptor: int) -> str | None:
    """Return the folder that a thread's relative path starts from; None if it can't be known any more."""
    name = "cwd" if descriptor == _HERE else f"fd/{descriptor}"
    try:
        return os.readlink(f"/proc/{thread}/{name}")
    except OSError:
        return None


def _meant(path: str, thread: int) -> str:
    """Return what a path means for a thread: `/proc/self/cwd/x`, `/dev/fd/3`. Source: proc(5)."""
    found = _MAGIC.match(path)
    if found is None:
        return path
    process, link, rest = found["process"] or "self", found["link"], found["rest"]
    process = str(thread) if process in {"self", "thread-self"} else process
    number = found["number"] or _STANDARD.get(found["name"] or "")
    try:
        target = os.readlink(f"/proc/{process}/{link or f'fd/{number}'}")
    except OSError:
        return path
    return f"{target.rstrip('/')}{rest}" if target.startswith("/") else path


def _group_of(thread: int) -> int:
    try:
        with open(f"/proc/{thread}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("Tgid:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def _program(thread: int) -> str:
    """The name of the program that a thread belongs to."""
    try:
        return os.path.basename(os.readlink(f"/proc/{thread}/exe"))
    except OSError:
        return ""
