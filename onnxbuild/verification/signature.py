"""A release's signatures against a public key."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from onnxbuild.adapters.signing_keys import key_id
from onnxbuild.release_format.checksums import Files, ReleaseFault
from onnxbuild.release_format.forms import envelope_bytes, pre_authentication, read_json
from onnxbuild.release_format.layout import (
    ENVELOPE_FILE,
    PAYLOAD_TYPE,
    PROVENANCE_FILE,
    SIGNATURE_FILE,
    SIGNATURES,
    SUMS_FILE,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

_SIGNATURE_BYTES = 64


def check_signatures(files: Files, key: Ed25519PublicKey | None) -> list[ReleaseFault]:
    """Check the signature over SHA256SUMS, and the one over the provenance; return what is wrong.

    Args:
        files: What is in the release.
        key: Whoever must have made them; None to look at their form alone.
    """
    faults = []
    for name in SIGNATURES:
        if name not in files.digests:
            faults.append(ReleaseFault(name, "is missing: the release is not signed"))
        elif name == SIGNATURE_FILE:
            faults += _check_signature(files, key)
        else:
            faults += _check_envelope(files, key)
    return faults


def _check_signature(files: Files, key: Ed25519PublicKey | None) -> list[ReleaseFault]:
    signature = files.read(SIGNATURE_FILE)
    if len(signature) != _SIGNATURE_BYTES:
        return [ReleaseFault(SIGNATURE_FILE, f"has {len(signature)} bytes; a signature has 64")]
    if key is not None and not _holds(key, signature, _bytes(files, SUMS_FILE)):
        return [ReleaseFault(SIGNATURE_FILE, f"is not this key's signature of {SUMS_FILE}")]
    return []


def _check_envelope(files: Files, key: Ed25519PublicKey | None) -> list[ReleaseFault]:
    """The envelope must be, byte for byte, the one that a release has around its provenance."""
    content = files.read(ENVELOPE_FILE)
    try:
        envelope = read_json(content)
        payload = base64.b64decode(envelope["payload"], validate=True)
        (signed,) = envelope["signatures"]
        keyid = str(signed["keyid"])
        signature = base64.b64decode(signed["sig"], validate=True)
    except (ValueError, LookupError, TypeError, AttributeError):
        return [ReleaseFault(ENVELOPE_FILE, "is no DSSE envelope")]
    provenance = _bytes(files, PROVENANCE_FILE)
    if key is not None:
        keyid = key_id(key)
        if not _holds(key, signature, pre_authentication(PAYLOAD_TYPE, payload)):
            return [ReleaseFault(ENVELOPE_FILE, "is not signed with this key")]
    if payload != provenance:
        return [ReleaseFault(ENVELOPE_FILE, f"holds another statement than {PROVENANCE_FILE}")]
    if len(signature) != _SIGNATURE_BYTES or content != envelope_bytes(
        keyid, provenance, signature
    ):
        return [ReleaseFault(ENVELOPE_FILE, "is not written as a release has it")]
    return []


def _holds(key: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def _bytes(files: Files, name: str) -> bytes:
    """Return its content; nothing if it is missing, which is reported elsewhere."""
    return files.read(name) if name in files.digests else b""
