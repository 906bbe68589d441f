"""Bytes of a shared store, with a bound on the time that a build waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import mmap
import re
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import CancelledError
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from onnxbuild.core.digest import Digest

if TYPE_CHECKING:
    from obstore.store import ObjectStore

T = TypeVar("T")
K = TypeVar("K")

GRACE_S = 3.0

REQUEST_S = 0.25
"""Seconds that each answer adds."""

LEAST_SPEED = 256 * 1024
"""Bytes a second: what is slower is built here instead."""

PARALLEL = 8
FAULTS_MAX = 3
CHUNK_BYTES = 1 << 16


class RemoteError(Exception):
    """A request that failed: refused, too slow, or answered with other bytes than asked for."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object of a shared store.

    Attributes:
        changed_s: When it was uploaded, by the server's clock; seconds since 1970.
    """

    name: str
    size_bytes: int
    changed_s: float


class Client:
    """One shared store; its methods block, and end in time whatever the server does.

    Reading is bounded by a budget of seconds: `grace_s`, and more for each answer and for each byte that arrived.
    When it is used up, or after FAULTS_MAX faults in a row, nothing more is read in this process: `lost` says why.

    Args:
        grace_s: Seconds that a build waits for a server that gives nothing.
        put_s: Seconds that one upload may take, and one more for each LEAST_SPEED / 16 bytes.
        clock: Seconds; monotonic.
    """

    def __init__(
        self,
        store: ObjectStore,
        *,
        grace_s: float = GRACE_S,
        put_s: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._is_plain = type(store).__name__ == "HTTPStore"  # which takes no upload in parts
        self._put_s = put_s
        self._clock = clock
        self._left_s = grace_s
        self._limit: asyncio.Timeout | None = None
        self._faults = 0
        self.lost = ""
        self.read_bytes = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="remote")
        self._thread.start()

    def cancel(self) -> None:
        """Drop what is under way."""

        async def cancel() -> None:
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(cancel(), self._loop).result(timeout=5)

    def close(self) -> None:
        """Drop what is under way; nothing may be asked any more."""
        self.cancel()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def get(self, names: Iterable[str], limit_bytes: int) -> dict[str, bytes]:
        """Read small objects in parallel; one that is not there, or can't be read, is left out."""
        found = self._read(lambda name: self._get(name, limit_bytes), names)
        return {name: content for name, content in found.items() if content is not None}

    def download(self, files: Mapping[Path, Digest]) -> list[Path]:
        """Download blobs in parallel; return those that came whole, with the right digest, whatever the others did."""
        found = self._read(lambda path: self._download(path, files[path]), files)
        return [path for path, is_there in found.items() if is_there]

    def has(self, names: Iterable[str]) -> set[str]:
        """Return which objects are there, asked in parallel."""
        return {name for name, is_there in self._read(self._has, names).items() if is_there}

    def put(self, name: str, content: bytes | Path) -> None:
        """Upload one object.

        Raises:
            RemoteError: It did not arrive.
        """
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        limit_s = self._put_s + size / (LEAST_SPEED / 16)

        async def upload(source: bytes | Path | mmap.mmap, *, in_parts: bool | None) -> None:
            async with asyncio.timeout(limit_s):
                await self._store.put_async(name, source, use_multipart=in_parts)

        if isinstance(content, bytes) or not size or not self._is_plain:
            self._run(upload(content, in_parts=None))
            return
        with content.open(
            "rb"
        ) as file:  # the map is not closed here: a cancelled request may still hold it
            mapped = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self._run(upload(mapped, in_parts=False))

    # --- for uploads and housekeeping, which don't use the budget of reads ----------------------

    def held(self, names: Iterable[str]) -> set[str]:
        """Return which objects are there, asked in parallel.

        Raises:
            RemoteError: The server does not say.
        """

        async def ask(name: str) -> bool:
            async with asyncio.timeout(self._put_s):
                return await self._has(name)

        asked = list(names)
        answers = self._run(_all(ask, asked))
        return {name for name, is_there in zip(asked, answers, strict=True) if is_there}

    def objects(self, folder: str) -> list[StoredObject]:
        """Return all objects below a folder.

        Raises:
            RemoteError: The server does not say.
        """

        async def list_all() -> list[StoredObject]:
            found: list[StoredObject] = []
            pages = self._store.list(folder)
            while True:
                async with asyncio.timeout(self._put_s):
                    page = await anext(pages, None)
                if page is None:
                    return found
                found += [
                    StoredObject(each["path"], each["size"], each["last_modified"].timestamp())
                    for each in page
                ]

        return self._run(list_all())

    def read_all(self, names: Iterable[str], limit_bytes: int) -> dict[str, bytes]:
        """Read small objects in parallel; one that is not there is left out.

        Raises:
            RemoteError: One can't be read.
        """

        async def read(name: str) -> tuple[str, bytes | None]:
            async with asyncio.timeout(self._put_s):
                return name, await self._get(name, limit_bytes)

        found = self._run(_all(read, names))
        return {name: content for name, content in found if content is not None}

    def remove(self, names: Iterable[str]) -> None:
        """Remove objects; one that is not there is gone already.

        Raises:
            RemoteError: One can't be removed.
        """

        async def remove(name: str) -> None:
            async with asyncio.timeout(self._put_s):
                with contextlib.suppress(FileNotFoundError):
                    await self._store.delete_async(name)

        self._run(_all(remove, names))

    def _run(self, task: Coroutine[Any, Any, T]) -> T:
        from obstore.exceptions import BaseError

        future = asyncio.run_coroutine_threadsafe(task, self._loop)
        try:
            return future.result()
        except TimeoutError as error:
            raise RemoteError("it does not answer in time") from error
        except (
            BaseError,
            OSError,
            ValueError,
            CancelledError,
            ExceptionGroup,
            RemoteError,
        ) as error:
            raise RemoteError(_reason(error)) from error
        finally:
            future.cancel()  # what Ctrl-C left

    def _read(self, ask: Callable[[K], Coroutine[Any, Any, T]], about: Iterable[K]) -> dict[K, T]:
        """Ask about each, in parallel and within the budget; what got no sound answer is left out."""
        from obstore.exceptions import BaseError

        found: dict[K, T] = {}

        async def one(each: K) -> None:
            if self.lost:
                return
            try:
                found[each] = await ask(each)
            except (BaseError, OSError, ValueError, RemoteError) as fault:
                self._faults += 1
                if self._faults >= FAULTS_MAX:
                    self.lost = _reason(fault)
            else:
                self._faults = 0
                self._earn(REQUEST_S)

        async def bounded() -> None:
            async with asyncio.timeout(max(self._left_s, 0.05)) as self._limit:
                await _all(one, about)

        if self.lost:
            return found
        began = self._clock()
        try:
            self._run(bounded())
        except RemoteError as fault:  # the budget is used up
            self.lost = str(fault)
        self._left_s -= self._clock() - began
        return found

    def _earn(self, earned_s: float) -> None:
        """Give the requests that are under way, and those after them, more time."""
        self._left_s += earned_s
        if self._limit is not None and (until := self._limit.when()) is not None:
            self._limit.reschedule(until + earned_s)

    def _arrived(self, size: int) -> None:
        """Count bytes, which earn the time that they may take."""
        self.read_bytes += size
        self._earn(size / LEAST_SPEED)

    async def _get(self, name: str, limit_bytes: int) -> bytes | None:
        try:
            answer = await self._store.get_async(name)
        except FileNotFoundError:
            return None
        if answer.meta["size"] > limit_bytes:
            raise RemoteError(f"{name} has {answer.meta['size']} bytes; at most {limit_bytes}")
        content = bytearray()
        async for chunk in answer.stream(min_chunk_size=CHUNK_BYTES):
            content += chunk
            if len(content) > limit_bytes:
                raise RemoteError(f"{name} has more than {limit_bytes} bytes")
        self._arrived(len(content))
        return bytes(content)

    async def _download(self, path: Path, digest: Digest) -> bool:
        name = blob_name(digest.sha256)
        try:
            answer = await self._store.get_async(name)
        except FileNotFoundError:
            return False
        if answer.meta["size"] != digest.size_bytes:
            raise RemoteError(f"{name} has {answer.meta['size']} bytes, not {digest.size_bytes}")
        sha256, size = hashlib.sha256(), 0
        with path.open("wb") as file:
            async for chunk in answer.stream(min_chunk_size=CHUNK_BYTES):
                size += len(chunk)
                if size > digest.size_bytes:
                    break
                sha256.update(chunk)
                file.write(chunk)
                self._arrived(len(chunk))
        if sha256.hexdigest() != digest.sha256:
            raise RemoteError(f"{name} holds other bytes than its name says")
        return True

    async def _has(self, name: str) -> bool:
        try:
            await self._store.head_async(name)
        except FileNotFoundError:
            return False
        return True


def blob_name(sha256: str) -> str:
    """Name of a blob, as Bazel's HTTP cache has it."""
    return f"cas/{sha256}"


async def _all(ask: Callable[[K], Coroutine[Any, Any, T]], about: Iterable[K]) -> list[T]:
    """Send a request about each, PARALLEL at a time; the first that fails ends all."""
    free = asyncio.Semaphore(PARALLEL)

    async def one(each: K) -> T:
        async with free:
            return await ask(each)

    async with asyncio.TaskGroup() as group:
        started = [group.create_task(one(each)) for each in about]
    return [each.result() for each in started]


def _reason(error: BaseException) -> str:
    """Return the sentence of an error of obstore: the status, the innermost message, or its first line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    text = str(error)
    if status := re.search(r"status code: (\d{3} [A-Za-z ]+)", text):
        return f"it answers {status[1].strip()}"
    inner = re.findall(r'(?:message|error): "([^"]+)"', text)
    sentence = inner[-1] if inner else text.partition("\n")[0]
    return " ".join(sentence.split())[:300] or type(error).__name__
