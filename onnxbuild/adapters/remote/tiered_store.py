"""A store on disk with a shared one behind it: what is missing here is fetched, what is built here is uploaded."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
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
from onnxbuild.core.errors import StoreError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


class TieredStore:
    """The port Store, over a store on disk and a remote one.

    A key's local results come first; those of the remote follow, if enough trusted builders signed them. Blobs are
    checked against their digests as they arrive. A remote that fails only means that more is built here.

    Blobs of hits are fetched when `bring` or `paths` asks for them. Those that are not here count as being on the remote
    until one turns out not to be; after `leave`, those that it names.

    Args:
        trusted: Key id -> public key of each builder whose records are taken.
        agree: How many of them must have signed the same result.
        uploads: Takes what is built here; None if nothing is uploaded.
        look_only: Fetch no blobs; ask the remote whether it has them.
    """

    def __init__(
        self,
        disk: DiskStore,
        client: Client,
        trusted: Mapping[str, Ed25519PublicKey],
        *,
        agree: int = 1,
        uploads: Uploads | None = None,
        look_only: bool = False,
    ) -> None:
        self._disk, self._client = disk, client
        self._trusted, self._agree = trusted, agree
        self._uploads, self._look_only = uploads, look_only
        self._asked: dict[str, tuple[ActionResult, ...]] = {}
        self._awaited: dict[str, list[ActionResult]] = {}
        self._gone: set[str] = set()
        self._left: set[str] | None = None
        self._there: set[str] = set()
        self.hits = 0
        self.ignored: list[str] = []

    # --- records --------------------------------------------------------------------------------

    def expect(self, keys: Collection[str]) -> None:
        """Ask the remote for the records of all keys that have none here, in parallel."""
        self._ask(
            {
                key
                for key in keys
                if key not in self._asked and not self._disk.record_path(key).exists()
            }
        )

    def lookup(self, key: str) -> Iterator[ActionResult]:
        """Yield the sound results under `key`: the local ones, then those of trusted builders, if these are needed."""
        known = []
        for each in self._disk.lookup(key):
            known.append((each.observed, each.outputs))
            yield each
        if key not in self._asked:
            self._ask([key])
        for each in self._asked[key]:
            if (each.observed, each.outputs) not in known:
                yield each

    def _ask(self, keys: Collection[str]) -> None:
        names = {
            (key, signer): record_name(key, signer) for key in keys for signer in self._trusted
        }
        contents = self._client.get(names.values(), RECORD_BYTES_MAX)
        for key in keys:
            records = []
            for signer, public in self._trusted.items():
                content = contents.get(names[key, signer])
                if content is None:
                    continue
                try:
                    records.append(read_signed(content, key, public))
                except (ValueError, KeyError, TypeError) as error:
                    self.ignored.append(f"the record of {key[:12]} is ignored: {error}")
            self._take(key, agreed(records, self._agree))
        if self._look_only:
            results = [result for key in keys for result in self._asked[key]]
            self._look_for(self._missing(a for each in results for a in each.outputs.values()))

    def _take(self, key: str, found: tuple[ActionResult, ...]) -> None:
        self._asked[key] = found
        for result in found:
            for artifact in result.outputs.values():
                self._awaited.setdefault(artifact.sha256, []).append(result)
            if not result.outputs and not self._look_only:
                self._keep(result)

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
        """Return what is wrong with the artifact's blobs, after fetching what has to be here."""
        faults = self._disk.faults(artifact, by_content=by_content)
        missing = self._missing([artifact]) if faults else {}
        if missing and self._look_only:
            self._look_for(missing)
            return () if self._there.issuperset(missing) else faults
        staying = set() if by_content else self._staying(missing)
        self._fetch_blobs({each: missing[each] for each in missing.keys() - staying})
        if faults:
            faults = self._disk.faults(artifact) if by_content else self._faults_here(artifact)
        if not faults:
            for result in self._awaited.pop(artifact.sha256, ()):
                if not any(self._faults_here(each) for each in result.outputs.values()):
                    self._keep(result)
        return faults

    def _look_for(self, missing: Collection[str]) -> None:
        """Ask the remote which of some blobs it has."""
        unknown = {blob_name(sha256): sha256 for sha256 in missing if sha256 not in self._there}
        self._there |= {unknown[name] for name in self._client.has(unknown)}

    def _faults_here(self, artifact: Artifact) -> tuple[str, ...]:
        """Return what is wrong with the blobs that are here, or should be."""
        staying = self._staying(self._missing([artifact]))
        files = tuple(each for each in artifact.files if each[1].sha256 not in staying)
        return self._disk.faults(Artifact(artifact.kind, files)) if files else ()

    def _staying(self, missing: Iterable[str]) -> set[str]:
        """Return which of some blobs may stay on the remote."""
        return {
            sha256
            for sha256 in missing
            if sha256 not in self._gone and (self._left is None or sha256 in self._left)
        }

    def _missing(self, artifacts: Iterable[Artifact]) -> dict[str, Digest]:
        """Return SHA-256 -> digest of the blobs that are not here."""
        return {
            digest.sha256: digest
            for artifact in artifacts
            for _, digest in artifact.files
            if not self._disk.blob(digest).exists()
        }

    def leave(self, artifacts: Iterable[Artifact]) -> None:
        """Let only these stay on the remote from now on; others are fetched as their hits are found.

        After a step that ran, steps may turn out to be up to date that no plan knew to be. What follows them may run,
        and then it is too late to find that their content is gone.
        """
        self._left = {digest.sha256 for artifact in artifacts for _, digest in artifact.files}

    def bring(self, artifacts: Iterable[Artifact]) -> bool:
        """Fetch in parallel what is not here; return whether all came.

        What did not come is missing from now on: its steps run again.

        Raises:
            StoreError: The local store can't take it.
        """
        missing = self._missing(artifacts)
        self._fetch_blobs(
            {sha256: digest for sha256, digest in missing.items() if sha256 not in self._gone}
        )
        left = self._missing(artifacts).keys() - self._gone
        self._gone |= left
        return not left

    def _fetch_blobs(self, missing: Mapping[str, Digest]) -> None:
        """Fetch blobs, as far as they are there.

        Raises:
            StoreError: The local store can't take them.
        """
        if not missing or self._client.lost:
            return
        temp = self._disk.root / "tmp"
        try:
            make_folder(temp)
            folder = Path(tempfile.mkdtemp(prefix="remote-", dir=temp))
        except OSError as error:
            raise store_error(error, temp) from error
        try:
            wanted = {folder / sha256: digest for sha256, digest in missing.items()}
            for path in self._client.download(wanted):
                self._disk.adopt(path, wanted[path])
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def ingest(self, folder: Path, kind: str) -> Artifact:
        """Take the files below `folder` in."""
        return self._disk.ingest(folder, kind)

    def paths(self, artifact: Artifact) -> Mapping[str, Path]:
        """File of the artifact -> where its content is, fetched if it was not here.

        Raises:
            StoreError: It can't be fetched.
        """
        if not self.bring([artifact]):
            raise StoreError(
                "what the remote store should hold can't be fetched",
                fix="run again: it is built here",
            )
        return self._disk.paths(artifact)

    def discard(self, digest: Digest) -> None:
        """Move a damaged blob out of the way; the remote may have it whole."""
        self._disk.discard(digest)

    def try_lock(self, key: str) -> FileLock | None:
        """The right to build `key` on this machine, or None while another run has it."""
        return self._disk.try_lock(key)
