"""Upload results in the background: blobs first, the signed record last."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import make_folder, write_atomically
from onnxbuild.adapters.remote.client import Client, RemoteError, blob_name
from onnxbuild.adapters.remote.signed_records import Signer
from onnxbuild.adapters.store.disk_store import DiskStore, read_record, seal
from onnxbuild.core.action import ActionResult

FOLDER = "uploads"
"""Folder of the store that has a file for each result that is still to be uploaded."""

FAULTS_MAX = 3
"""Uploads that fail one after the other, or tries of one, before the rest is left to a later run."""


class Uploads:
    """Results on their way to a remote store; a build never waits for them.

    A result that is waiting has a file in the store, so what one run leaves the next one uploads.

    Args:
        disk: Where results and blobs are.
    """

    def __init__(self, disk: DiskStore, client: Client, signer: Signer) -> None:
        self._disk, self._client, self._signer = disk, client, signer
        self._waiting: deque[ActionResult] = deque()
        self._changed = threading.Condition()
        self._there: set[str] = set()
        self._given_up: list[ActionResult] = []
        self._tries: Counter[str] = Counter()
        self._busy = False
        self._closed = self._lost = False
        self.sent = self.sent_bytes = 0
        self.failed = ""
        self._thread = threading.Thread(target=self._run, daemon=True, name="uploads")
        self._thread.start()

    def resume(self) -> None:
        """Take up what earlier runs left."""
        for path in sorted((self._disk.root / FOLDER).glob("*.json")):
            try:
                for result in read_record(path.read_bytes(), path.stem):
                    self._add(result)
            except (OSError, ValueError, KeyError, TypeError):
                path.unlink(missing_ok=True)

    def add(self, result: ActionResult) -> None:
        """Note a result, and upload it soon."""
        make_folder(self._disk.root / FOLDER)
        write_atomically(self._note(result), seal(result.key, [result]), self._disk.root / "tmp")
        self._add(result)

    def _add(self, result: ActionResult) -> None:
        with self._changed:
            self._waiting.append(result)
            self._changed.notify_all()

    def _note(self, result: ActionResult) -> Path:
        return self._disk.root / FOLDER / f"{result.key}.json"

    def left(self) -> tuple[int, int]:
        """Return how many results are still to be uploaded, and at most how many bytes these are."""
        with self._changed:
            results = [*self._waiting, *self._given_up]
            count = len(results) + self._busy
        digests = {digest for each in results for digest in each.digests()}
        return count, sum(each.size_bytes for each in digests if each.sha256 not in self._there)

    def wait(self, report: Callable[[int, int], None] | None = None, every_s: float = 1.0) -> None:
        """Wait until all is uploaded, or nothing more can be.

        Args:
            report: Takes what `left` returns, now and then; None if nobody looks on.
            every_s: How often.
        """
        due_s = time.monotonic() + every_s
        while True:
            with self._changed:
                if self._lost or not (self._waiting or self._busy):
                    return
                self._changed.wait(every_s)
            if report is not None and time.monotonic() >= due_s:
                report(*self.left())
                due_s = time.monotonic() + every_s

    def close(self) -> None:
        """Stop; what is not uploaded stays noted."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        while self._thread.is_alive():
            self._client.cancel()
            self._thread.join(0.2)

    def _run(self) -> None:
        faults = 0
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if self._closed:
                    return
                result = self._waiting[0]
                self._busy = True
                self._waiting.popleft()
            try:
                self._upload(result)
                faults = 0
            except FileNotFoundError:  # collected as garbage meanwhile
                self._note(result).unlink(missing_ok=True)
            except (RemoteError, OSError) as fault:
                faults += 1
                with self._changed:
                    self._tries[result.key] += 1
                    is_last = self._tries[result.key] >= FAULTS_MAX
                    (self._given_up if is_last else self._waiting).append(result)
                    self._lost = faults >= FAULTS_MAX
                    if is_last or self._lost:
                        self.failed = str(fault)
                time.sleep(0.1 * faults)
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                if self._lost:
                    return

    def _upload(self, result: ActionResult) -> None:
        names = {
            blob_name(digest.sha256): digest
            for digest in result.digests()
            if digest.sha256 not in self._there
        }
        there = self._client.held(names)
        for name, digest in names.items():
            if self._closed:
                raise RemoteError("the run is over")
            if name not in there:
                self._client.put(name, self._disk.blob(digest))
                self.sent_bytes += digest.size_bytes
            self._there.add(digest.sha256)
        name, record = self._signer.record(result)
        self._client.put(name, record)
        self.sent += 1
        self._note(result).unlink(missing_ok=True)
