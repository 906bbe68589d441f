"""Records that leave a machine: signed by their builder, checked against the keys that a project trusts.

An object `ac/NAME` is one line of JSON (the signer and the signature) and the record as the local store writes it.
NAME is made of the action's key and of the signer, so builders don't overwrite each other's records, and a
reader knows every name to ask for.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from onnxbuild.adapters.disk.plain_files import parse_json
from onnxbuild.adapters.signing_keys import key_id
from onnxbuild.adapters.store.disk_store import read_record, seal
from onnxbuild.core.action import ActionResult
from onnxbuild.core.digest import canonical_json, tagged_sha256

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

RECORDS = "ac"
"""Folder of the records."""

RECORD_BYTES_MAX = 16 << 20
_PURPOSE = b"onnxbuild record 1\n"
_HEAD_BYTES_MAX = 1024


class Signer:
    """A builder's private key."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.id = key_id(key.public_key())

    def record(self, result: ActionResult) -> tuple[str, bytes]:
        """Return the name and the bytes of a result's record."""
        content = seal(result.key, [result])
        signature = base64.b64encode(self._key.sign(_PURPOSE + content)).decode()
        head = json.dumps({"keyid": self.id, "sig": signature}, sort_keys=True)
        return record_name(result.key, self.id), head.encode() + b"\n" + content


def record_name(key: str, signer: str) -> str:
    """Name of the record that a builder signs for an action's key."""
    return f"{RECORDS}/{tagged_sha256('signed record', [key, signer])}"


def read_signed(content: bytes, key: str, signer: Ed25519PublicKey) -> tuple[ActionResult, ...]:
    """Return the results of a signed record; none if another version of this program wrote it.

    Args:
        content: Untrusted.
        key: The action's key that was asked for.
        signer: Whose signature it must have.

    Raises:
        ValueError, KeyError, TypeError: It is damaged, of another key, or not signed by that key.
    """
    from cryptography.exceptions import InvalidSignature

    head, newline, record = content.partition(b"\n")
    if not newline or len(head) > _HEAD_BYTES_MAX:
        raise ValueError("it is no signed record")
    signature = base64.b64decode(json.loads(head)["sig"], validate=True)
    try:
        signer.verify(signature, _PURPOSE + record)
    except InvalidSignature:
        raise ValueError("its signature does not match") from None
    return read_record(record, key)


def blobs_of_signed(name: str, content: bytes) -> frozenset[str]:
    """Return the SHA-256 of the blobs that a record needs, whoever signed it.

    Args:
        name: Its object's.
        content: Untrusted; the signature is not looked at.

    Raises:
        ValueError, KeyError, TypeError: It is no record of this version of onnxbuild, or damaged.
    """
    head, newline, record = content.partition(b"\n")
    if not newline or len(head) > _HEAD_BYTES_MAX:
        raise ValueError("it is no signed record")
    key = str(parse_json(record)["key"])
    if record_name(key, str(parse_json(head)["keyid"])) != name:
        raise ValueError("its name is that of another record")
    results = read_record(record, key)
    if not results:
        raise ValueError("another version of onnxbuild wrote it")
    return frozenset(digest.sha256 for result in results for digest in result.digests())


def agreed(records: Iterable[Sequence[ActionResult]], least: int) -> tuple[ActionResult, ...]:
    """Return the results that at least so many builders signed with the same inputs and outputs.

    Args:
        records: One builder's results each.
    """
    counts: Counter[bytes] = Counter()
    first: dict[bytes, ActionResult] = {}
    for results in records:
        for same, result in {_identity(each): each for each in results}.items():
            counts[same] += 1
            first.setdefault(same, result)
    return tuple(first[same] for same, count in counts.items() if count >= least)


def _identity(result: ActionResult) -> bytes:
    """Return what builders must agree on: all but the cost and the measured numbers."""
    body = result.to_json()
    for own in ("expense", "metrics", "notes"):
        del body[own]
    return canonical_json(body)
