"""Push: blobs, then the manifest, then what is attached to it, and its tag last."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.adapters.signing_keys import read_private_key
from onnxbuild.adapters.store.delivery import Blob, Content, damaged, digest_of
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import BuildError, NotReproducibleError, UsageError
from onnxbuild.onnxkit.oci.manifests import (
    EMPTY_CONFIG,
    ENVELOPE,
    MANIFEST,
    PROVENANCE,
    SHA256,
    SIGNATURE,
    Descriptor,
    model_config,
    model_manifest,
    referrer_manifest,
)
from onnxbuild.registry.contents import Contents
from onnxbuild.registry.manifest import MANIFEST_MAX_BYTES
from onnxbuild.registry.progress import Progress
from onnxbuild.registry.repository import BlobSource, Repository
from onnxbuild.regular_files import open_regular
from onnxbuild.release_format.layout import (
    ENVELOPE_FILE,
    PROVENANCE_FILE,
    SIGNATURE_FILE,
    SUMS_FILE,
)
from onnxbuild.release_format.tree import bytes_of

if TYPE_CHECKING:
    from onnxbuild.registry.reference import Reference

ATTACHED = {
    SIGNATURE_FILE: (SIGNATURE, SIGNATURE),
    ENVELOPE_FILE: (PROVENANCE, ENVELOPE),
    PROVENANCE_FILE: (PROVENANCE, PROVENANCE),
}
"""File -> artifact type and media type of what is attached to a manifest."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """Result of a push.

    Attributes:
        sha256: The manifest's.
        files: How many there are.
        size_bytes: Of all files.
        sent: Blobs that were sent.
        sent_bytes: Of those.
        known: Blobs that were there.
        was: What the tag named before, `sha256:...`; empty if nothing else.
        attached: Names of the files that are attached.
    """

    sha256: str
    files: int
    size_bytes: int
    sent: int
    sent_bytes: int
    known: int
    was: str
    attached: tuple[str, ...]


def push(
    contents: Contents, reference: Reference, repository: Repository, progress: Progress
) -> Pushed:
    """Store an artifact; its tag names it once all of it is there.

    Args:
        reference: Where, with a tag.
        progress: Takes how it goes on.

    Raises:
        BuildError: It can't be stored, or can't be read here; the tag is as it was.
    """
    files = {path: digest_of(content) for path, content in contents.files.items()}
    config = model_config(contents.about, contents.technical, files)
    manifest = model_manifest(config, files, contents.annotations)
    if len(manifest) > MANIFEST_MAX_BYTES:
        raise BuildError(f"it has {len(files)} files: too many for one manifest")
    subject = Digest.of(manifest)
    sender = _Sender(repository, progress)
    for path in sorted(files):
        sender.send(path, contents.files[path])
    sender.send("the config", config)
    target = f"{SHA256}{subject.sha256}"
    if _there(repository, target) != manifest:
        repository.put_manifest(manifest)
    for name, content in contents.attached.items():
        _attach(name, content, subject, sender)
    before = _there(repository, reference.tag)
    if before != manifest:
        repository.put_manifest(manifest, reference.tag)
    was = (
        ""
        if before in (None, manifest)
        else f"{SHA256}{hashlib.sha256(before or b'').hexdigest()}"
    )
    return Pushed(
        sha256=subject.sha256,
        files=len(files),
        size_bytes=sum(each.size_bytes for each in files.values()),
        sent=sender.sent,
        sent_bytes=sender.sent_bytes,
        known=sender.known,
        was=was,
        attached=tuple(contents.attached),
    )


def _there(repository: Repository, target: str) -> bytes | None:
    """The manifest that is there; None also for one that is damaged, which a push mends."""
    try:
        return repository.manifest(target)
    except NotReproducibleError:
        return None


def signature(contents: Contents, key: Path, ask: Callable[[str], str] | None) -> dict[str, bytes]:
    """Return what a signature adds to what is attached: Ed25519 over SHA256SUMS.

    Args:
        contents: A bundle or a package.
        key: File of the private key.
        ask: Asks a person for its passphrase; None if nobody is there.

    Raises:
        UsageError: The key is none, or the contents have no SHA256SUMS of their own to sign.
    """
    if contents.is_release:
        raise UsageError(
            "a release is signed when it is made",
            fix="onnxbuild release RECIPE --version V --sign PRIVATE.pem",
        )
    private_key = read_private_key(key, ask)
    if SUMS_FILE not in contents.files:
        raise UsageError(f"{contents.name} has no {SUMS_FILE} to sign")
    return {SIGNATURE_FILE: private_key.sign(bytes_of(contents.files[SUMS_FILE]))}


class _Sender:
    """Sends each blob once, and counts."""

    def __init__(self, repository: Repository, progress: Progress) -> None:
        self.repository, self._progress = repository, progress
        self._done: set[Digest] = set()
        self.sent = self.sent_bytes = self.known = 0

    def send(self, name: str, content: Content) -> None:
        digest = digest_of(content)
        if digest in self._done:
            return
        self._done.add(digest)
        report = self._progress.blob("sending", name, digest.size_bytes)
        with ExitStack() as files:
            if not self.repository.has_blob(digest) and self.repository.put_blob(
                digest, lambda: _opened(content, files), report
            ):
                self.sent += 1
                self.sent_bytes += digest.size_bytes
            else:
                self.known += 1


def _attach(name: str, content: bytes, subject: Digest, sender: _Sender) -> None:
    artifact_type, layer_type = ATTACHED[name]
    sender.send(name, content)
    sender.send("the empty config", EMPTY_CONFIG)
    manifest = referrer_manifest(artifact_type, layer_type, name, content, subject)
    descriptor = Descriptor(MANIFEST, Digest.of(manifest), artifact_type)
    sender.repository.attach(manifest, descriptor, subject.sha256)


def _opened(content: Content, files: ExitStack) -> BlobSource:
    if isinstance(content, Blob):
        return _Checked(files.enter_context(open_regular(content.path)), content)
    return BytesIO(content)


class _Checked:
    """Reads a blob of the store, and sees at its end that it is what it should be."""

    def __init__(self, source: BlobSource, blob: Blob) -> None:
        self._source, self._blob = source, blob
        self._hash, self._left = hashlib.sha256(), blob.digest.size_bytes

    def read(self, size: int = -1, /) -> bytes:
        try:
            content = self._source.read(size)
        except OSError as error:  # not to be taken for one of the connection
            raise damaged(self._blob) from error
        self._hash.update(content)
        self._left -= len(content)
        is_end = not content or self._left <= 0
        if is_end and (self._left or self._hash.hexdigest() != self._blob.digest.sha256):
            raise damaged(self._blob)
        return content
