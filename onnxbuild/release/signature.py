"""A release's signatures against a public key."""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.core.errors import UsageError
from onnxbuild.release.checksums import Fault
from onnxbuild.release.layout import (
    ENVELOPE_FILE,
    PAYLOAD_TYPE,
    PROVENANCE_FILE,
    SIGNATURE_FILE,
    SUMS_FILE,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def read_public_key(path: Path) -> Ed25519PublicKey:
    """An Ed25519 public key, in PEM or as OpenSSH writes it.

    Raises:
        UsageError: The file is missing, or holds something else.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    fix = "openssl pkey -in PRIVATE.pem -pubout -out PUBLIC.pem"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"can't read the key {path}: {error.strerror}", fix=fix) from error
    if b"PRIVATE KEY" in content:
        raise UsageError(
            f"{path} is a private key; a signature is checked with the public one", fix=fix
        )
    try:
        is_ssh = content.startswith(b"ssh-")
        key: object = (
            serialization.load_ssh_public_key(content)
            if is_ssh
            else serialization.load_pem_public_key(content)
        )
    except (ValueError, UnsupportedAlgorithm) as error:
        raise UsageError(f"{path} is no public key: {error}", fix=fix) from error
    if not isinstance(key, Ed25519PublicKey):
        raise UsageError(
            f"{path} is a key of another kind; releases are signed with Ed25519", fix=fix
        )
    return key


def check_signatures(folder: Path, key: Ed25519PublicKey) -> list[Fault]:
    """What is wrong with the signature over SHA256SUMS, and the one over the provenance."""
    faults = []
    signature = _bytes(folder / SIGNATURE_FILE)
    sums = _bytes(folder / SUMS_FILE)
    if signature is None:
        faults.append(Fault(SIGNATURE_FILE, "is missing: the release is not signed"))
    elif sums is None or not _holds(key, signature, sums):
        faults.append(Fault(SIGNATURE_FILE, f"is not this key's signature of {SUMS_FILE}"))
    if (folder / ENVELOPE_FILE).exists():
        faults += _check_envelope(folder, key)
    return faults


def _check_envelope(folder: Path, key: Ed25519PublicKey) -> list[Fault]:
    try:
        envelope = json.loads((folder / ENVELOPE_FILE).read_bytes())
        payload = base64.b64decode(envelope["payload"], validate=True)
        kind = str(envelope["payloadType"])
        signatures = [base64.b64decode(s["sig"], validate=True) for s in envelope["signatures"]]
    except (OSError, ValueError, KeyError, TypeError, binascii.Error):
        return [Fault(ENVELOPE_FILE, "is no DSSE envelope")]
    signed = pre_authentication(kind, payload)
    if kind != PAYLOAD_TYPE or not any(_holds(key, each, signed) for each in signatures):
        return [Fault(ENVELOPE_FILE, "is not signed with this key")]
    if payload != _bytes(folder / PROVENANCE_FILE):
        return [Fault(ENVELOPE_FILE, f"holds another statement than {PROVENANCE_FILE}")]
    return []


def pre_authentication(kind: str, payload: bytes) -> bytes:
    """What a DSSE signature is made over.

    Source: DSSE protocol v1, PAE: "DSSEv1" SP LEN(type) SP type SP LEN(body) SP body.
    """
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)


def _holds(key: Ed25519PublicKey, signature: bytes, content: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verify(signature, content)
    except InvalidSignature:
        return False
    return True


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
