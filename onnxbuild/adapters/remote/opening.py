"""Open the remote store that a project's settings name."""

from __future__ import annotations

import base64
import netrc
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from onnxbuild.core.errors import UsageError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore

SCHEMES = ("https", "http", "s3", "gs", "az", "file")
TOKEN_VARIABLE = "ONNXBUILD_REMOTE_TOKEN"  # noqa: S105 - a name, no secret
KEYRING_SERVICE = "onnxbuild"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_CONNECT_S = 2


def open_remote(
    url: str,
    environment: Mapping[str, str],
    *,
    allow_http: bool,
    where: str,
    headers: Mapping[str, str] | None = None,
) -> ObjectStore:
    """Open a store; nothing is sent yet.

    Args:
        url: `https://`, `s3://`, `gs://`, `az://` or `file://`.
        allow_http: Take `http://` of other machines than this one.
        where: What names the URL, for messages.
        headers: What is sent with each request by HTTP, such as credentials.

    Raises:
        UsageError: The URL can't be used, or obstore is not installed.
    """
    parts = urlsplit(url)
    if parts.scheme not in SCHEMES:
        raise UsageError(
            f"the remote '{url}' is no URL that can be used; expected one of {', '.join(each + '://' for each in SCHEMES)}",
            where=where,
            fix='url = "https://cache.example/onnxbuild"',
        )
    if parts.username or parts.password:
        raise UsageError(
            "the remote's URL holds a password, and URLs are shown in logs",
            where=where,
            fix=f"set {TOKEN_VARIABLE}, or write it into ~/.netrc",
        )
    if parts.scheme == "http" and parts.hostname not in _LOOPBACK and not allow_http:
        raise UsageError(
            f"the remote {url} is not encrypted: whoever is on the way reads the models and the token",
            where=where,
            fix="use https://, or set `allow_http = true` in a network that you trust",
        )
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        raise UsageError(
            "a remote needs the package obstore, which is not installed",
            where=where,
            fix="pip install 'onnxbuild[remote]'",
        ) from None
    if parts.scheme == "file":
        return from_url(url, config=None, client_options=None, retry_config=None, mkdir=True)
    insecure = parts.scheme == "http" or allow_http or _is_local_service(environment)
    options: ClientConfig = {
        "connect_timeout": f"{_CONNECT_S}s",
        "timeout": "1day",  # the client bounds each request itself
        "allow_http": insecure,
    }
    if headers:
        options["default_headers"] = {**headers}
    try:
        store: ObjectStore = from_url(
            url, config=None, client_options=options, retry_config={"max_retries": 0}
        )
    except (BaseError, ValueError) as error:
        raise UsageError(f"the remote '{url}' can't be used: {error}", where=where) from error
    return store


_SERVICE_VARIABLES = {
    "s3": ("AWS_ACCESS_KEY_ID",),
    "gs": ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"),
    "az": ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_ID"),
}


@dataclass(frozen=True, slots=True)
class RemoteCredentials:
    """Credentials that go with requests to a remote store.

    Attributes:
        source: Which they are and where they are from, without their values; or that there are none.
        headers: What is sent by HTTP; empty for services whose own variables are read.
    """

    source: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def find_credentials(url: str, environment: Mapping[str, str]) -> RemoteCredentials:
    """Return the credentials for a remote store.

    Those of http and https are in ONNXBUILD_REMOTE_TOKEN (a bearer token), in ~/.netrc, or the token that the system's
    keyring has for the service `onnxbuild` and the host as user. Those of s3, gs and az are in the variables that these
    services' own tools read.

    Args:
        url: The remote's.
        environment: This process's.
    """
    parts = urlsplit(url)
    variables = _SERVICE_VARIABLES.get(parts.scheme, (TOKEN_VARIABLE,))
    is_http, host = parts.scheme in ("http", "https"), parts.hostname or ""
    if found := [name for name in variables if environment.get(name)]:
        token = environment[found[0]]
        return RemoteCredentials(
            f"the credentials in {found[0]}", _bearer(token) if is_http else {}
        )
    if not is_http:
        names = " and ".join(variables)
        return RemoteCredentials(f"no credentials of variables: {names} are not set")
    if login := _netrc_login(host):
        pair = base64.b64encode(login.encode()).decode()
        headers = {"authorization": f"Basic {pair}"}
        return RemoteCredentials(f"the login for {host} in ~/.netrc", headers)
    if token := _keyring_token(host):
        return RemoteCredentials(f"the token for {host} in the keyring", _bearer(token))
    return RemoteCredentials(
        f"no credentials: {TOKEN_VARIABLE} is not set, and neither ~/.netrc nor a keyring has some for {host}"
    )


def _bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def _netrc_login(host: str) -> str:
    """Return `LOGIN:PASSWORD`; empty if there is none."""
    try:
        found = netrc.netrc().authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return ""
    return f"{found[0]}:{found[2]}" if found else ""


def _keyring_token(host: str) -> str:
    """Return the token that `keyring set onnxbuild HOST` stored; empty if there is none, or no keyring."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        return ""
    try:
        return keyring.get_password(KEYRING_SERVICE, host) or ""
    except KeyringError:  # locked, or a machine without one
        return ""


def _is_local_service(environment: Mapping[str, str]) -> bool:
    endpoint = environment.get("AWS_ENDPOINT_URL") or environment.get("AWS_ENDPOINT") or ""
    return urlsplit(endpoint).hostname in _LOOPBACK
