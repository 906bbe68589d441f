"""Sign a release: Ed25519 over SHA256SUMS, and over the provenance in a DSSE envelope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onnxbuild.adapters.signing_keys import key_id
from onnxbuild.release_format.forms import envelope_bytes, pre_authentication
from onnxbuild.release_format.layout import (
    ENVELOPE_FILE,
    PAYLOAD_TYPE,
    PROVENANCE_FILE,
    SIGNATURE_FILE,
    SUMS_FILE,
)
from onnxbuild.release_format.tree import Tree, bytes_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def signatures(key: Ed25519PrivateKey, tree: Tree) -> Tree:
    """The files that a signed release has in addition to those of an unsigned one."""
    return {
        SIGNATURE_FILE: key.sign(bytes_of(tree[SUMS_FILE])),
        ENVELOPE_FILE: envelope(key, bytes_of(tree[PROVENANCE_FILE])),
    }


def envelope(key: Ed25519PrivateKey, statement: bytes) -> bytes:
    """A DSSE envelope around an in-toto statement."""
    signature = key.sign(pre_authentication(PAYLOAD_TYPE, statement))
    return envelope_bytes(key_id(key.public_key()), statement, signature)
