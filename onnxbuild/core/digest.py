"""Content digests and the canonical JSON that keys are made of."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Digest:
    """A content's identity.

    Attributes:
        sha256: 64 lower-case hex digits, never cut.
        size_bytes: Length of the content.
    """

    sha256: str
    size_bytes: int

    @staticmethod
    def of(content: bytes) -> Digest:
        """The digest of `content`."""
        return Digest(hashlib.sha256(content).hexdigest(), len(content))


def canonical_json(value: object) -> bytes:
    """One spelling for each JSON value: sorted keys, no blanks, ASCII only.

    Raises:
        ValueError: `value` holds NaN or an infinity, which JSON can't spell.
        TypeError: `value` holds something that is not JSON.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    ).encode("ascii")


def tagged_sha256(tag: str, value: object) -> str:
    """SHA-256 of canonical JSON under a type tag, so that two kinds of things never share a hash."""
    return hashlib.sha256(canonical_json([tag, value])).hexdigest()
