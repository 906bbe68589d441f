"""Explain failures of a registry in words: its refusals, and why it did not answer."""

from onnxbuild.core.errors import BuildError, UsageError
from onnxbuild.registry.credentials import ANONYMOUS, Credentials
from onnxbuild.release_format.forms import printable, read_json

_TEXT_MAX = 200
_UNAUTHORIZED, _FORBIDDEN, _NOT_ALLOWED, _TOO_LARGE = 401, 403, 405, 413
_TLS_EXPECTED = "HTTP request to an HTTPS server"


class RegistryUnavailableError(BuildError):
    """The registry can't be reached now, or broke off: trying again may help.

    Args:
        after_s: How long the registry asks to wait; 0 if it does not say.
    """

    def __init__(self, what: str, *, where: str = "", fix: str = "", after_s: float = 0.0) -> None:
        super().__init__(what, where=where, fix=fix)
        self.after_s = after_s


class CredentialsError(UsageError):
    """The registry asks for another user, or password."""


def refusal(
    registry: str,
    status: int,
    content: bytes,
    credentials: Credentials | None = None,
    *,
    is_upload: bool = False,
) -> BuildError:
    """Return the error for an answer.

    Args:
        content: The answer's body, whatever it is.
        credentials: What was sent, or could have been.
        is_upload: Whether something was sent.
    """
    said = _said(content)
    detail = f": {said}" if said else ""
    if status in (_UNAUTHORIZED, _FORBIDDEN):
        known = credentials or ANONYMOUS
        if known.username:
            user = printable(known.username)
            what = f"it refuses the user '{user}' (from {known.source}){detail}"
            fix = "check the user name, the password, and what this user may do there"
        else:
            what = f"it asks for a user name and a password, and none is known{detail}"
            fix = "docker login, or --username NAME --password-stdin"
            if known.elsewhere:
                fix = f"--username NAME --password-stdin ({known.elsewhere})"
        return CredentialsError(what, where=registry, fix=fix)
    if _TLS_EXPECTED in said:
        return UsageError("it expects TLS", where=registry, fix="--https")
    if status == _NOT_ALLOWED and is_upload:
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


def lost(registry: str, error: Exception) -> BuildError:
    """Return the error for a request without an answer; a RegistryUnavailableError where that may pass.

    Args:
        error: What the connection met.
    """
    import http.client
    import socket
    import ssl

    if isinstance(error, ssl.SSLCertVerificationError):
        return BuildError(
            f"its certificate is not trusted: {error.verify_message}",
            where=registry,
            fix="--ca-file CA.pem, the certificate of the authority that issued it",
        )
    if isinstance(error, ssl.SSLError):
        return BuildError(
            f"no TLS connection: {error.reason or error}",
            where=registry,
            fix="if it is a registry without TLS: --plain-http",
        )
    if isinstance(error, socket.gaierror):
        return BuildError(
            f"there is no such host: {error.strerror}", where=registry, fix="check the name"
        )
    if isinstance(error, ValueError):
        return BuildError("the registry names a place that is no URL", where=registry)
    if isinstance(error, TimeoutError):
        why = str(error) if str(error).startswith("it ") else "it did not answer in time"
    elif isinstance(error, ConnectionRefusedError):
        why = "it can't be reached: connection refused"
    elif isinstance(error, ConnectionError | http.client.HTTPException):
        why = "the connection broke off"
    else:
        text = getattr(error, "strerror", None) or str(error) or type(error).__name__
        why = f"it can't be reached: {printable(text)}"
    return RegistryUnavailableError(
        why,
        where=registry,
        fix="see that it runs, then type the same command again: what was moved so far is kept",
    )
