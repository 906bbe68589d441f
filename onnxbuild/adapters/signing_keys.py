"""Ed25519 keys in files: those that sign releases and records of a remote store, and those that check them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from onnxbuild.adapters import locate
from onnxbuild.core.errors import UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

PASSPHRASE_VARIABLE = "ONNXBUILD_SIGN_PASSPHRASE"  # noqa: S105 - a name, no secret

_FIX = "openssl genpkey -algorithm ed25519 -out PRIVATE.pem"


def key_id(key: Ed25519PublicKey) -> str:
    """sha256 of a public key's DER (SubjectPublicKeyInfo): 64 hex digits."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


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
