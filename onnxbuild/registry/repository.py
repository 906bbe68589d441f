"""A place for artifacts, whether in a registry or on disk: what `push` and `pull` need of it."""

import hashlib
from collections.abc import Callable, Sequence
from typing import IO, Protocol

from onnxbuild.adapters.disk.atomic_files import output_error
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import BuildError, NotReproducibleError
from onnxbuild.onnxkit.oci.manifests import Descriptor
from onnxbuild.registry.reference import LAYOUT

Report = Callable[[int], None]
"""Takes how many bytes of a blob were moved so far."""


class BlobSource(Protocol):
    """A blob's content, read from its start."""

    def read(self, size: int = -1, /) -> bytes:
        """Return at most `size` bytes; nothing at the end."""
        ...


class BlobFile:
    """Takes a blob that somebody else sends: hashed, and no longer than it should be.

    Args:
        file: Written to; empty.
        digest: What it must become.
        where: The artifact, for messages.
    """

    def __init__(self, file: IO[bytes], digest: Digest, where: str) -> None:
        self._file, self._digest, self._where = file, digest, where
        self._hash = hashlib.sha256()
        self.size_bytes = 0

    @property
    def is_whole(self) -> bool:
        """Whether all of it is there."""
        return self.size_bytes == self._digest.size_bytes

    def write(self, content: bytes) -> None:
        """Take some bytes.

        Raises:
            NotReproducibleError: There are more than there should be.
            BuildError: They can't be written.
        """
        self.size_bytes += len(content)
        if self.size_bytes > self._digest.size_bytes:
            raise self._refused(f"is longer than the {self._digest.size_bytes} bytes that")
        self._hash.update(content)
        try:
            self._file.write(content)
        except OSError as error:  # not to be taken for one of the connection
            raise unwritable(error, getattr(self._file, "name", "a blob")) from error

    def restart(self) -> None:
        """Drop what was taken."""
        if self.size_bytes:
            self._file.seek(0)
            self._file.truncate()
        self._hash, self.size_bytes = hashlib.sha256(), 0

    def check(self) -> None:
        """See that it is what it should be.

        Raises:
            NotReproducibleError: It is not.
        """
        if not self.is_whole:
            there, all_ = self.size_bytes, self._digest.size_bytes
            raise self._refused(f"is cut short: it has {there} bytes, of {all_} that")
        if self._hash.hexdigest() != self._digest.sha256:
            raise self._refused("was altered or damaged: it does not have the digest that")

    def _refused(self, why: str) -> NotReproducibleError:
        again = "push it again from where it was made"
        if not self._where.startswith(LAYOUT):
            # a push sends no blob that the registry says it has
            again = f"remove the artifact and its blobs from the registry, then {again}"
        return NotReproducibleError(
            f"the blob sha256:{self._digest.sha256} {why} its manifest names",
            where=self._where,
            fix=f"{again}; nothing of it was written here",
        )


def altered_manifest(sha256: str, where: str) -> NotReproducibleError:
    """Return the error for a manifest that does not have the digest that its tag, or the registry, names."""
    return NotReproducibleError(
        f"the manifest sha256:{sha256} is missing, altered or damaged",
        where=where,
        fix="push it again from where it was made",
    )


def unwritable(error: OSError, path: object) -> BuildError:
    """Return the error for what can't be written here."""
    return output_error(error, str(error.filename or path))


class Repository(Protocol):
    """Blobs, manifests and tags; sha256 names a blob or a manifest."""

    def close(self) -> None:
        """Let go of it."""
        ...

    def has_blob(self, digest: Digest) -> bool:
        """Return whether it has a blob, with the right size."""
        ...

    def put_blob(self, digest: Digest, opened: Callable[[], BlobSource], report: Report) -> bool:
        """Store a blob; return whether its bytes were sent."""
        ...

    def save_blob(self, digest: Digest, file: BlobFile, report: Report) -> None:
        """Write a blob to a file, which the caller checks."""
        ...

    def manifest(self, target: str) -> bytes | None:
        """Return the manifest of a tag, or of `sha256:...`; None if there is none."""
        ...

    def put_manifest(self, content: bytes, tag: str = "") -> None:
        """Store a manifest, and let a tag name it, if one is given."""
        ...

    def attach(self, content: bytes, descriptor: Descriptor, subject: str) -> None:
        """Store a manifest that refers to another, so that `referrers` of that one finds it."""
        ...

    def referrers(self, subject: str) -> Sequence[Descriptor]:
        """Return the manifests that refer to one."""
        ...
