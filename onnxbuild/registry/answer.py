"""A registry's answer: its status, headers and body."""

from __future__ import annotations

import http.client
from dataclasses import dataclass

from onnxbuild.core.errors import BuildError

SMALL_BYTES = 1 << 20
"""Longest body of an answer that is no content of an artifact."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A registry's answer.

    Attributes:
        status: HTTP's.
        response: The rest; its body is read once.
        url: What gave it, after redirects.
        method: HTTP's, of the request.
    """

    status: int
    response: http.client.HTTPResponse
    url: str
    method: str

    def header(self, name: str) -> str:
        """A header's value; empty if there is none."""
        return self.response.headers.get(name) or ""

    def read(self, limit_bytes: int) -> bytes:
        """Return at most so many bytes of the body; nothing at its end.

        Raises:
            HTTPException: The body is not in HTTP's form.
            OSError: The connection broke off.
        """
        try:
            return self.response.read(limit_bytes)
        except ValueError as error:  # of http.client, which takes a negative length of a chunk
            raise http.client.IncompleteRead(b"") from error

    def content(self, limit_bytes: int = SMALL_BYTES) -> bytes:
        """The body.

        Raises:
            BuildError: It is longer than the limit.
            IncompleteRead: The connection broke off.
        """
        found = self.read(limit_bytes + 1)
        if len(found) > limit_bytes:
            raise BuildError(f"the registry's answer is longer than {limit_bytes} bytes")
        if self.response.length:  # of what was announced, which http.client does not compare
            raise http.client.IncompleteRead(found, self.response.length)
        return found
