"""Digest Python sources by their syntax trees: comments and layout do not count."""

import ast
import hashlib
import sys
from pathlib import Path

SOURCE_TAG = f"ast {sys.implementation.cache_tag} "
"""Tag of `source_digest` in the stat cache."""
NAME_TAG = "defines "
"""Start of the tags of answers whether a source defines a name, which follow from its syntax tree."""


def source_digest(path: str) -> str | None:
    """sha256 of a file's syntax tree without positions; of its bytes if it does not parse.

    Type comments count, since TorchScript reads them; all other comments and layout do not.
    """
    try:
        content = Path(path).read_bytes()
    except OSError:
        return None
    return source_digest_of(content)


def source_digest_of(content: bytes) -> str:
    """Return `source_digest` of a file's bytes."""
    try:
        tree = ast.dump(ast.parse(content, type_comments=True))
    except (SyntaxError, ValueError, RecursionError):
        return hashlib.sha256(b"bytes " + content).hexdigest()
    return hashlib.sha256(f"tree {tree}".encode("utf-8", "surrogatepass")).hexdigest()
