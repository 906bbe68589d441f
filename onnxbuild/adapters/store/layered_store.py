"""A store on disk with others below it that are only read: what a hit needs is copied from them, and kept."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from onnxbuild.adapters.disk.atomic_files import is_full, make_folder, store_error, temp_name
from onnxbuild.adapters.disk.linux_files import clone_or_copy
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.store.disk_store import DiskStore, read_record
from onnxbuild.adapters.store.layout import blob_path, is_store, record_path
from onnxbuild.core.action import ActionResult
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.sizes import counted, size_text
from onnxbuild.regular_files import open_regular, read_regular


class BaseLayer:
    """A store that is only read, below another one. What can't be read in it is not there.

    Attributes:
        root: Its folder.
        hits: Results that were taken from it.
        hit_bytes: Bytes that were copied for them.
        trouble: Why some of it was not used; empty if nothing was wrong.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.hits = 0
        self.hit_bytes = 0
        self.trouble = "" if is_store(root) else "there is no store in it"

    def lookup(self, key: str) -> tuple[ActionResult, ...]:
        """Return the sound results under a key, newest first."""
        path = record_path(self.root, key)
        try:
            return read_record(read_regular(path), key)
        except FileNotFoundError:
            pass
        except OSError as error:
            self._note(f"{path} can't be read: {error.strerror}")
        except (ValueError, KeyError, TypeError):
            self._note(f"{path} is damaged")
        return ()

    def has(self, digest: Digest) -> bool:
        """Return whether a file of the digest's name and size is there."""
        try:
            return blob_path(self.root, digest.sha256).stat().st_size == digest.size_bytes
        except OSError:
            return False

    def copy(self, digest: Digest, target: Path) -> bool:
        """Copy a blob, with shared blocks where the filesystem can; return whether it was there and whole.

        Raises:
            OSError: The copy has no room.
        """
        try:
            source = open_regular(blob_path(self.root, digest.sha256))
        except FileNotFoundError:
            return False
        except OSError as error:
            self._note(f"the blob {digest.sha256[:12]} can't be read: {error.strerror}")
            return False
        with source, target.open("xb") as copy:
            try:
                found = clone_or_copy(source.fileno(), copy.fileno())
            except OSError as error:
                if is_full(error):
                    raise
                self._note(f"the blob {digest.sha256[:12]} can't be copied: {error.strerror}")
                return False
        if found != digest.sha256:
            self._note(f"the blob {digest.sha256[:12]} is damaged")
            return False
        self.hit_bytes += digest.size_bytes
        return True

    def _note(self, trouble: str) -> None:
        self.trouble = self.trouble or trouble

    def remarks(self) -> Iterator[str]:
        """Yield what a run should say of it at its end."""
        if self.hits:
            yield f"{counted(self.hits, 'result')} came from {self.root} ({size_text(self.hit_bytes)})"
        if not self.trouble and not is_store(self.root):
            self._note("it went away during the run")
        if self.trouble:
            yield f"the store below, {self.root}, was not used for all: {self.trouble}"


class LayeredStore(DiskStore):
    """A store on disk that looks for what it lacks in the layers below it, and never writes there.

    Args:
        bases: The layers below, the first one first.
        fetch: Copy the blobs of hits; else it is enough that a layer has them, as for `plan`.
    """

    def __init__(
        self, root: Path, stats: StatCache, bases: Sequence[BaseLayer], *, fetch: bool = True
    ) -> None:
        super().__init__(root, stats)
        self._bases, self._fetch = bases, fetch
        self._awaited: dict[str, list[tuple[BaseLayer, ActionResult]]] = {}

    def lookup(self, key: str) -> tuple[ActionResult, ...]:
        """Return the sound results under `key`: the store's own, then those of the layers below."""
        found = list(self.own_results(key))
        known = [(each.observed, each.outputs) for each in found]
        for base in self._bases:
            for result in base.lookup(key):
                if (result.observed, result.outputs) in known:
                    continue
                known.append((result.observed, result.outputs))
                found.append(result)
                for artifact in result.outputs.values():
                    self._awaited.setdefault(artifact.sha256, []).append((base, result))
                if not result.outputs and self._fetch:
                    self._keep(base, result)
        return tuple(found)

    def faults(self, artifact: Artifact, *, by_content: bool = False) -> tuple[str, ...]:
        """Return what is wrong with the artifact's blobs, after copying those that only a layer below has."""
        faults = super().faults(artifact, by_content=by_content)
        if faults:
            missing = {each for _, each in artifact.files if not self.blob(each).exists()}
            if not self._fetch:
                there = all(any(base.has(each) for base in self._bases) for each in missing)
                return () if there else faults
            self._bring(missing)
            faults = super().faults(artifact, by_content=by_content)
        if not faults:
            for base, result in self._awaited.pop(artifact.sha256, ()):
                if not any(DiskStore.faults(self, each) for each in result.outputs.values()):
                    self._keep(base, result)
        return faults

    def _bring(self, digests: Iterable[Digest]) -> None:
        """Copy blobs from the first layer that has them whole.

        Raises:
            StoreError: This store can't take them.
        """
        make_folder(self.root / "tmp")
        for digest in digests:
            for base in self._bases:
                temp = self.root / "tmp" / temp_name()
                try:
                    if base.copy(digest, temp):
                        self.adopt(temp, digest)
                        break
                except OSError as error:
                    raise store_error(error, temp) from error
                finally:
                    with contextlib.suppress(OSError):
                        temp.unlink(missing_ok=True)

    def _keep(self, base: BaseLayer, result: ActionResult) -> None:
        if result not in self.own_results(result.key):
            self.record(replace(result, fetched=True))
            base.hits += 1
