"""HTTP by urllib3, with a deadline, a least speed and a most of bytes for each request."""

from __future__ import annotations

import http.client
import io
import socket
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, Any

import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.util.connection import create_connection

from onnxbuild.adapters.clock import SystemClock
from onnxbuild.core.errors import BuildError
from onnxbuild.registry.repository import BlobSource, Report

if TYPE_CHECKING:
    import ssl

BLOCK_BYTES = 1 << 18
SMALL_BYTES = 1 << 16
"""Longest body of an answer that is no content of an artifact; and the most of all in an answer that is no body."""
_CONNECT_S = 15.0
"""Seconds for each address of a host: nobody may answer at the first."""


class Pace:
    """Time and bytes that are left to a request; each byte that is moved earns time.

    Args:
        silence_s: Seconds until an answer begins, and over which its speed is averaged.
        upload_s: Likewise for an upload: a registry may copy a large blob to where it keeps it first.
        least_bytes_s: Bytes a second.
    """

    def __init__(
        self, silence_s: float = 60.0, upload_s: float = 900.0, least_bytes_s: float = 4096.0
    ) -> None:
        self.silence_s, self._upload_s, self._least_bytes_s = silence_s, upload_s, least_bytes_s
        self._now = SystemClock().monotonic_s

    def start(self, body_bytes: int, *, is_upload: bool = False, seconds: float = 0.0) -> None:
        """Begin a request, whose answer has a body of so many bytes at most; chunks may add an eighth."""
        self._seconds = seconds or (self._upload_s if is_upload else self.silence_s)
        self._until = self._now() + self._seconds
        self._body_bytes, self._received, self._most_bytes = body_bytes, 0, SMALL_BYTES

    def start_body(self) -> None:
        """Take that the headers have ended."""
        self._most_bytes = SMALL_BYTES + self._body_bytes * 9 // 8

    def left_s(self) -> float:
        """Return how long the next bytes may take.

        Raises:
            TimeoutError: No time is left.
        """
        left_s = self._until - self._now()
        if left_s <= 0:
            silent = f"it did not answer for {self._seconds:.0f} s"
            slow = f"it is too slow: fewer than {self._least_bytes_s:.0f} bytes/s"
            raise TimeoutError(slow if self._received else silent)
        return left_s

    def moved(self, count: int) -> None:
        """Take that bytes were sent or received."""
        earned = self._until + count / self._least_bytes_s
        self._until = min(earned, self._now() + self._seconds)

    def received(self, count: int) -> None:
        """Take that bytes of the answer came.

        Raises:
            BuildError: They are too many.
        """
        self.moved(count)
        self._received += count
        if self._received > self._most_bytes:
            raise BuildError(f"the registry's answer goes on after {self._most_bytes} bytes")


class Sent:
    """An upload, which keeps to the pace, and reports how far it is."""

    def __init__(self, source: BlobSource, pace: Pace, report: Report) -> None:
        self._source, self._pace, self._report, self._done = source, pace, report, 0

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes; nothing at the end."""
        self._pace.left_s()
        content = self._source.read(size)
        self._done += len(content)
        self._pace.moved(len(content))
        self._report(self._done)
        return content


class _Received(io.RawIOBase):
    """The bytes that a socket receives for an answer, in place of the socket's own file."""

    def __init__(self, sock: socket.socket, pace: Pace) -> None:
        self._sock, self._pace = sock, pace
        self._raw: io.RawIOBase = sock.makefile("rb", buffering=0)

    def makefile(self, _: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        self._sock.settimeout(self._pace.left_s())
        try:
            count = self._raw.readinto(buffer) or 0
        except TimeoutError:
            self._pace.left_s()  # raises one that says why
            raise
        self._pace.received(count)
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Plain(HTTPConnection):
    pace: Pace

    def _new_conn(self) -> socket.socket:
        """Connect in a thread that nobody has to wait for: no signal ends the look-up of a name."""
        found, address = Future[socket.socket](), (self._dns_host, self.port)

        def connect() -> None:
            try:
                options = self.socket_options
                found.set_result(create_connection(address, _CONNECT_S, socket_options=options))
            except Exception as error:  # noqa: BLE001 - raised where it is waited for
                found.set_exception(error)

        Thread(target=connect, daemon=True).start()
        sock = found.result(self.pace.left_s())
        sock.settimeout(self.pace.silence_s)
        return sock

    def getresponse(self) -> urllib3.HTTPResponse:  # type: ignore[override]
        answer = super().getresponse()
        self.pace.start_body()
        return answer

    def response_class(self, sock: Any, *args: Any, **options: Any) -> http.client.HTTPResponse:  # type: ignore[override]
        received: Any = _Received(sock, self.pace)
        return http.client.HTTPResponse(received, *args, **options)


class _WithTls(_Plain, HTTPSConnection):
    pass


def open_pools(pace: Pace, tls: ssl.SSLContext | None) -> urllib3.PoolManager:
    """Return connections that keep to a pace; `tls` checks certificates, None does with the system's authorities."""
    pools = urllib3.PoolManager(ssl_context=tls, timeout=pace.silence_s, retries=False)
    pools.pool_classes_by_scheme = {
        each.scheme: type("", (each,), {"ConnectionCls": type("", (kind,), {"pace": pace})})
        for each, kind in (
            (urllib3.HTTPConnectionPool, _Plain),
            (urllib3.HTTPSConnectionPool, _WithTls),
        )
    }
    return pools


def read_body(answer: urllib3.BaseHTTPResponse, limit_bytes: int = SMALL_BYTES) -> bytes:
    """Return the body of an answer.

    Raises:
        BuildError: It is longer than the limit.
        HTTPError: It broke off.
    """
    found = bytearray()
    while block := answer.read1(BLOCK_BYTES):
        found += block
        if len(found) > limit_bytes:
            raise BuildError(f"the registry's answer has more than {limit_bytes} bytes")
    return bytes(found)
