"""A store on disk with a shared one behind it: what is missing here is fetched, what is built here is uploaded."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.adapters.disk.atomic_files import make_folder, store_error
from onnxbuild.adapters.disk.locks import FileLock
from onnxbuild.adapters.remote.client import Client, blob_name
from onnxbuild.adapters.remote.signed_records import (
    RECORD_BYTES_MAX,
    agreed,
    read_signed,
    record_name,
)
from onnxbuild.adapters.remote.uploads import Uploads
from onnxbuild.adapters.store.disk_store import DiskStore
from onnxbuild.core.action import ActionResult
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


class TieredStore:
    """The port Store, over a store on disk and a remote one.

    A key's local results come first; those of the remote follow, if enough trusted builders signed them. Blobs are
    fetched when their result turns out to be a hit, and checked against their digests. A remote that fails only means that
    more is built here.

    Args:
        trusted: Key id -> public key of each builder whose records are taken.
        agree: How many of them must have signed the same result.
        uploads: Takes what is built here; None if nothing is uploaded.
        fetch: Fetch the blobs of hits; else it is enough that the remote has them, as for `plan`.
    """

    def __init__(
        self,
        disk: DiskStore,
        client: Client,
        trusted: Mapping[str, Ed25519PublicKey],
        *,
        agree: int = 1,
        uploads: Uploads | None = None,
        fetch: bool = True,
    ) -> None:
        self._disk, self._client = disk, client
        self._trusted, self._agree = trusted, agree
        self._uploads, self._fetch = uploads, fetch
        self._asked: dict[str, tuple[ActionResult, ...]] = {}
        self._awaited: dict[str, list[ActionResult]] = {}
        self.hits = 0
        self.ignored: list[str] = []

    # --- records --------------------------------------------------------------------------------

    def lookup(self, key: str) -> tuple[ActionResult, ...]:
        """Return the sound results under `key`: the local ones, then those of trusted builders."""
        here = self._disk.lookup(key)
        known = [(each.observed, each.outputs) for each in here]
        there = (each for each in self._remote(key) if (each.observed, each.outputs) not in known)
        return (*here, *there)

    def _remote(self, key: str) -> tuple[ActionResult, ...]:
        if key in self._asked:
            return self._asked[key]
        records = []
        for signer, public in self._trusted.items():
            content = self._client.get(record_name(key, signer), RECORD_BYTES_MAX)
            if content is None:
                continue
            try:
                records.append(read_signed(content, key, public))
            except (ValueError, KeyError, TypeError) as error:
                self.ignored.append(f"the record of {key[:12]} is ignored: {error}")
        found = self._asked[key] = agreed(records, self._agree)
        for result in found:
            for artifact in result.outputs.values():
                self._awaited.setdefault(artifact.sha256, []).append(result)
            if not result.outputs and self._fetch:
                self._keep(result)
        return found

    def record(self, result: ActionResult) -> None:
        """Commit a result here, and upload it in the background."""
        self._disk.record(result)
        if self._uploads is not None:
            self._uploads.add(result)

    def _keep(self, result: ActionResult) -> None:
        self._disk.record(result)
        self.hits += 1

    # --- blobs ----------------------------------------------------------------------------------

    def faults(self, artifact: Artifact, *, by_content: bool = False) -> tuple[str, ...]:
        """Return what is wrong with the artifact's blobs, after fetching those that are missing here."""
        faults = self._disk.faults(artifact, by_content=by_content)
        if faults:
            missing = {
                digest.sha256: digest
                for _, digest in artifact.files
                if not self._disk.blob(digest).exists()
            }
            if not self._fetch:
                names = {blob_name(sha256) for sha256 in missing}
                return () if self._client.has(names) == names else faults
            self._bring(missing.values())
            faults = self._disk.faults(artifact, by_content=by_content)
        if not faults:
            for result in self._awaited.pop(artifact.sha256, ()):
                if not any(self._disk.faults(each) for each in result.outputs.values()):
                    self._keep(result)
        return faults

    def _bring(self, digests: Iterable[Digest]) -> None:
        """Fetch blobs, as far as they are there.

        Raises:
            StoreError: The local store can't take them.
        """
        temp = self._disk.root / "tmp"
        try:
            make_folder(temp)
            folder = Path(tempfile.mkdtemp(prefix="remote-", dir=temp))
        except OSError as error:
            raise store_error(error, temp) from error
        try:
            wanted = {folder / digest.sha256: digest for digest in digests}
            for path in self._client.download(wanted):
                self._disk.adopt(path, wanted[path])
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def ingest(self, folder: Path, kind: str) -> Artifact:
        """Take the files below `folder` in."""
        return self._disk.ingest(folder, kind)

    def paths(self, artifact: Artifact) -> Mapping[str, Path]:
        """File of the artifact -> where its content is."""
        return self._disk.paths(artifact)

    def discard(self, digest: Digest) -> None:
        """Move a damaged blob out of the way; the remote may have it whole."""
        self._disk.discard(digest)

    def try_lock(self, key: str) -> FileLock | None:
        """The right to build `key` on this machine, or None while another run has it."""
        return self._disk.try_lock(key)
