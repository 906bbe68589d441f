"""Sign a release: Ed25519 over SHA256SUMS, and over the provenance in a DSSE envelope."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.adapters import locate
from onnxbuild.core.errors import UsageError
from onnxbuild.release_format.forms import envelope_bytes, key_id, pre_authentication
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

PASSPHRASE_VARIABLE = "ONNXBUILD_SIGN_PASSPHRASE"  # noqa: S105 - a name, no secret

_FIX = "openssl genpkey -algorithm ed25519 -out PRIVATE.pem"


def read_private_key(path: Path, ask: Callable[[str], str] | None) -> Ed25519PrivateKey:
    """An Ed25519 private key, PKCS#8 in PEM.

    Args:
        ask: Asks a person for the passphrase of a key that has one, if the environment has none;
            None if nobody is there.

    Raises:
        UsageError: The file is missing, holds something else, or the passphrase is wrong.
    """
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(f"can't read the key {path}: {error.strerror}", fix=_FIX) from error
    if b"PUBLIC KEY" in content:
        raise UsageError(f"{path} is a public key; a release is signed with the private one")
    passphrase = None
    if b"ENCRYPTED" in content:
        passphrase = _passphrase(path, ask).encode()
    try:
        key = load_pem_private_key(content, passphrase)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        what = (
            "is no private key in PEM" if passphrase is None else "does not open: wrong passphrase"
        )
        raise UsageError(
            f"the key {path} {what}", fix=_FIX if passphrase is None else ""
        ) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise UsageError(f"{path} is a key of another kind; expected Ed25519", fix=_FIX)
    return key


def _passphrase(path: Path, ask: Callable[[str], str] | None) -> str:
    found = locate.environment().get(PASSPHRASE_VARIABLE)
    if found is not None:
        return found
    if ask is None:
        raise UsageError(
            f"the key {path} has a passphrase, and nobody is there to ask",
            fix=f"set {PASSPHRASE_VARIABLE}",
        )
    return ask(f"Passphrase of {path}")


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
