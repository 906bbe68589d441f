"""The form of a signed provenance: a DSSE envelope, and what its signature is made over."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

from onnxbuild.release_format.layout import PAYLOAD_TYPE

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


def envelope_bytes(keyid: str, statement: bytes, signature: bytes) -> bytes:
    """A DSSE envelope around an in-toto statement.

    Source: https://github.com/secure-systems-lab/dsse/blob/master/envelope.md.
    """
    envelope = {
        "payload": base64.b64encode(statement).decode("ascii"),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [{"keyid": keyid, "sig": base64.b64encode(signature).decode("ascii")}],
    }
    return json.dumps(envelope, sort_keys=True, indent=2).encode("ascii") + b"\n"


def key_id(key: Ed25519PublicKey) -> str:
    """sha256 of a public key's DER (SubjectPublicKeyInfo): 64 hex digits."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


def pre_authentication(kind: str, payload: bytes) -> bytes:
    """Return the bytes that a DSSE signature is made over (PAE).

    Source: DSSE protocol v1, PAE: "DSSEv1" SP LEN(type) SP type SP LEN(body) SP body.
    """
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind.encode(), len(payload), payload)
