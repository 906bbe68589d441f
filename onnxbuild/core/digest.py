"""Content digests and the canonical JSON that keys are made of."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, order=True)
class Digest:
    """A content's identity.

    Attributes:
        sha256: 64 lower-case hex digits, never cut.
        size_bytes: Length of the content, >= 0.

    Raises:
        TypeError, ValueError: A field is anything else. Paths are made of digests.
    """

    sha256: str
    size_bytes: int

    def __post_init__(self) -> None:
        check_sha256(self.sha256)
        if type(self.size_bytes) is not int:
            raise TypeError(f"{self.size_bytes!r} is not a size")
        if self.size_bytes < 0:
            raise ValueError(f"{self.size_bytes} is not a size")

    @staticmethod
    def of(content: bytes) -> Digest:
        """The digest of `content`."""
        return Digest(hashlib.sha256(content).hexdigest(), len(content))


def check_sha256(text: str) -> str:
    """Return `text` if it is 64 lower-case hex digits.

    Raises:
        TypeError, ValueError: It is not.
    """
    if _SHA256.fullmatch(text) is None:
        raise ValueError(f"{text[:80]!r} is not a sha256")
    return text


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
