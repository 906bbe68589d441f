"""Find, choose and check what is attached to an artifact: its signature and its provenance."""

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Literal

from onnxbuild.adapters.signing_keys import read_public_key
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import NotReproducibleError
from onnxbuild.onnxkit.oci.manifests import (
    ENVELOPE,
    MANIFEST,
    PROVENANCE,
    SHA256,
    SIGNATURE,
    Descriptor,
)
from onnxbuild.registry.manifest import read_manifest
from onnxbuild.registry.repository import BlobFile, Repository
from onnxbuild.release_format.checksums import Files, compare_sums
from onnxbuild.release_format.layout import (
    ENVELOPE_FILE,
    NOT_SUMMED,
    PROVENANCE_FILE,
    SIGNATURE_FILE,
    SIGNATURES,
    SUMS_FILE,
)
from onnxbuild.verification.signature import check_signatures

SIGNED_FILES = (SUMS_FILE, PROVENANCE_FILE, *SIGNATURES)
"""Files that are read before anything else is fetched, where the artifact has them."""
SMALL_MAX_BYTES = 8 << 20
_REFERRERS_MAX, _REFERRERS_MAX_BYTES = 64, 2 * SMALL_MAX_BYTES
_FILE_OF = {(SIGNATURE, SIGNATURE): SIGNATURE_FILE, (PROVENANCE, ENVELOPE): ENVELOPE_FILE}
"""Artifact type and the layer's media type -> the file that it is in a signed release."""

State = Literal["checked", "not checked", "none"]


@dataclass(frozen=True, slots=True)
class Attached:
    """The signature files that belong to an artifact.

    Attributes:
        files: Name -> content.
        state: What is known of the signature.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    state: State = "none"


def attached_to(
    subject: str, files: Mapping[str, Digest], repository: Repository, where: str
) -> dict[str, list[bytes]]:
    """Return file name -> each content that somebody has attached as such; anybody who may write there can.

    Args:
        subject: sha256 of the manifest.
        files: The artifact's own; what is among them is not looked for.
        where: The reference, for messages.
    """
    found: dict[str, list[bytes]] = {}
    ours = [
        each
        for each in repository.referrers(subject)
        if each.artifact_type in (SIGNATURE, PROVENANCE) and each.media_type == MANIFEST
    ]
    left_bytes = _REFERRERS_MAX_BYTES
    for each in ours[:_REFERRERS_MAX]:
        try:
            name, content = _attachment(each, subject, repository, where, left_bytes)
        except NotReproducibleError:
            continue  # whoever may write there can attach what is none; it is as if it were not there
        left_bytes -= len(content)
        if name and name not in files:
            found.setdefault(name, []).append(content)
    return found


def _attachment(
    entry: Descriptor, subject: str, repository: Repository, where: str, left_bytes: int
) -> tuple[str, bytes]:
    """The file that a referrer attaches, and its name; an empty name if it is none of ours.

    Raises:
        NotReproducibleError: The referrer, or its layer, is missing or altered.
    """
    content = repository.manifest(f"{SHA256}{entry.digest.sha256}")
    if content is None or Digest.of(content).sha256 != entry.digest.sha256:
        raise _refused("a referrer is missing or altered", where)
    manifest = read_manifest(content, where)
    layer = manifest.layers[0] if len(manifest.layers) == 1 else None
    most_bytes = min(left_bytes, SMALL_MAX_BYTES)
    if layer is None or manifest.subject != subject or layer.digest.size_bytes > most_bytes:
        return "", b""
    name = _FILE_OF.get((manifest.artifact_type, layer.media_type), "")
    if not name:
        return "", b""
    file = BytesIO()
    taken = BlobFile(file, layer.digest, where)
    repository.save_blob(layer.digest, taken, lambda _: None)
    taken.check()
    return name, file.getvalue()


def check_signed(
    files: Mapping[str, Digest],
    small: Mapping[str, bytes],
    attached: Mapping[str, list[bytes]],
    key: Path | None,
    where: str,
) -> Attached:
    """Check SHA256SUMS against the manifest, and the signatures over it, before anything large is fetched.

    Args:
        files: Path -> digest, of the artifact's layers.
        small: Content of those SIGNED_FILES that are layers.
        attached: See `attached_to`.
        key: File of the public key; None to look at the form alone.
        where: The reference, for messages.

    Returns: The signature files that go with it: with a key, those that it made.

    Raises:
        UsageError: The key is none.
        NotReproducibleError: Anything is not as it was signed.
    """
    public_key = None if key is None else read_public_key(key)
    if SUMS_FILE not in small:
        if key is not None:
            raise _refused(f"it has no {SUMS_FILE}, which a signature is made over", where)
        return Attached()
    with tempfile.TemporaryDirectory(prefix="onnxbuild-pull-") as temporary:
        folder = Path(temporary)
        for name, content in small.items():
            (folder / name).write_bytes(content)
        wanted = [n for n in SIGNATURES if n == SIGNATURE_FILE or PROVENANCE_FILE in files]
        _check_covered(files, folder / SUMS_FILE, wanted, where)
        if not any(name in small or attached.get(name) for name in wanted):
            if key is not None:
                raise _refused("it is not signed", where)
            return Attached()
        chosen = {}
        for name in wanted:
            wrong = []
            for content in _candidates(name, small, attached):
                (folder / name).write_bytes(content)
                found = Files(folder, {**files, name: Digest.of(content)}, ())
                wrong = [f for f in check_signatures(found, public_key) if f.file == name]
                if not wrong:
                    if name not in small:
                        chosen[name] = content
                    break
            else:
                if key is None and name not in small:
                    return Attached()  # what somebody attached is no signature of it
                raise _refused(str(wrong[0]) if wrong else f"{name} is missing", where)
    return Attached(chosen, "not checked" if key is None else "checked")


def _check_covered(
    files: Mapping[str, Digest], sums: Path, signatures: list[str], where: str
) -> None:
    """See that SHA256SUMS lists every file, but itself and the signatures that are checked.

    Raises:
        NotReproducibleError: It does not, or a file is not as it is listed.
    """
    for fault in compare_sums(files, sums):
        raise _refused(str(fault), where)
    for name in sorted(files.keys() & NOT_SUMMED - {SUMS_FILE, *signatures}):
        raise _refused(f"no signature covers {name}", where)


def _candidates(
    name: str, small: Mapping[str, bytes], attached: Mapping[str, list[bytes]]
) -> Iterator[bytes]:
    if name in small:
        yield small[name]
    else:
        yield from sorted(attached.get(name, ()))


def _refused(why: str, where: str) -> NotReproducibleError:
    return NotReproducibleError(
        f"{why}; nothing was written", where=where, fix="ask whoever pushed it, or check the key"
    )
