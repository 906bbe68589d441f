"""A proxy of TCP that delays and limits: a link to a server that is far away, on loopback."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_CHUNK_BYTES = 1 << 16


class _Link:
    """Both directions of all connections share the bandwidth of each direction.

    Args:
        port: Of the server on loopback.
        delay_s: Each way.
        bytes_s: Each way; 0 for no limit.
    """

    def __init__(self, port: int, delay_s: float, bytes_s: float) -> None:
        self._port, self._delay_s, self._bytes_s = port, delay_s, bytes_s
        self._free_s = [0.0, 0.0]

    async def connected(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        """Carry one connection until either side closes it."""
        far, there = await asyncio.open_connection("127.0.0.1", self._port)
        with suppress(asyncio.CancelledError):  # the proxy ends
            await asyncio.gather(self._carry(near, there, 0), self._carry(far, back, 1))

    async def _carry(
        self, source: asyncio.StreamReader, target: asyncio.StreamWriter, way: int
    ) -> None:
        loop = asyncio.get_running_loop()
        arriving: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(64)

        async def deliver() -> None:
            while True:
                at_s, chunk = await arriving.get()
                await asyncio.sleep(max(0.0, at_s - loop.time()))
                if not chunk:
                    target.close()
                    return
                target.write(chunk)
                await target.drain()

        delivering = asyncio.create_task(deliver())
        try:
            while chunk := await source.read(_CHUNK_BYTES):
                sent_s = max(loop.time(), self._free_s[way])
                if self._bytes_s:
                    sent_s += len(chunk) / self._bytes_s
                    self._free_s[way] = sent_s
                    await asyncio.sleep(max(0.0, sent_s - loop.time()))
                await arriving.put((sent_s + self._delay_s, chunk))
        except ConnectionError:
            pass
        await arriving.put((loop.time() + self._delay_s, b""))
        try:
            await delivering
        except ConnectionError:
            target.close()


@contextmanager
def slow_link(port: int, *, round_trip_s: float = 0.0, bytes_s: float = 0.0) -> Iterator[int]:
    """Yield the port of a proxy to a port of loopback."""
    opened: queue.Queue[tuple[asyncio.AbstractEventLoop, asyncio.Event, int]] = queue.Queue()

    async def serve() -> None:
        link, over = _Link(port, round_trip_s / 2, bytes_s), asyncio.Event()
        server = await asyncio.start_server(link.connected, "127.0.0.1", 0)
        opened.put((asyncio.get_running_loop(), over, server.sockets[0].getsockname()[1]))
        await over.wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    loop, over, near = opened.get()
    try:
        yield near
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
