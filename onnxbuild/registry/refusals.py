"""What a registry refused, in words: HTTP status and the codes of the distribution specification."""

from __future__ import annotations

from onnxbuild.core.errors import BuildError, UsageError
from onnxbuild.registry.credentials import ANONYMOUS, Credentials
from onnxbuild.release_format.forms import printable, read_json

_TEXT_MAX = 200
_UNAUTHORIZED, _FORBIDDEN, _NOT_ALLOWED, _TOO_LARGE = 401, 403, 405, 413
_TLS_EXPECTED = "HTTP request to an HTTPS server"


def refusal(
    registry: str, status: int, content: bytes, credentials: Credentials | None = None
) -> BuildError:
    """Return the error for an answer.

    Args:
        registry: HOST or HOST:PORT.
        status: HTTP's.
        content: The answer's body, whatever it is.
        credentials: What was sent, or could have been.
    """
    said = _said(content)
    detail = f": {said}" if said else ""
    if status in (_UNAUTHORIZED, _FORBIDDEN):
        known = credentials or ANONYMOUS
        if known.username:
            what = (
                f"it refuses the user '{printable(known.username)}' (from {known.source}){detail}"
            )
            fix = "check the user name, the password, and what this user may do there"
        else:
            what = f"it asks for a user name and a password, and none is known{detail}"
            fix = "docker login, or --username NAME --password-stdin"
            if known.elsewhere:
                fix = f"--username NAME --password-stdin ({known.elsewhere})"
        return UsageError(what, where=registry, fix=fix)
    if _TLS_EXPECTED in said:
        return UsageError("it expects TLS", where=registry, fix="--https")
    if status == _NOT_ALLOWED:
        return BuildError(
            f"it takes no uploads: it may be read-only{detail}",
            where=registry,
            fix="push to a registry, or a repository, that can be written",
        )
    if status == _TOO_LARGE:
        return BuildError(
            f"a file is larger than it takes{detail}",
            where=registry,
            fix="raise the limit of the registry, or of the proxy in front of it",
        )
    return BuildError(f"it answered with HTTP status {status}{detail}", where=registry)


def _said(content: bytes) -> str:
    """The registry's own words, safe to print; empty if there are none."""
    try:
        value = read_json(content)
        errors = value["errors"]
        parts = [f"{each['code']}: {each.get('message') or ''}".rstrip(": ") for each in errors]
        text = "; ".join(parts)
    except (ValueError, LookupError, TypeError, AttributeError):
        text = content.decode("utf-8", "replace").strip()
        text = "" if text.startswith(("<", "{")) else text
    return printable(text)[:_TEXT_MAX]
