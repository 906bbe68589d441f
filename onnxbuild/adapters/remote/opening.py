"""Open the remote store that a project's settings name."""

from __future__ import annotations

import netrc
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from onnxbuild.core.errors import UsageError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore

SCHEMES = ("https", "http", "s3", "gs", "az", "file")
TOKEN_VARIABLE = "ONNXBUILD_REMOTE_TOKEN"  # noqa: S105 - a name, no secret
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_CONNECT_S = 2


def open_remote(
    url: str, environment: Mapping[str, str], *, allow_http: bool, where: str
) -> ObjectStore:
    """Open a store; nothing is sent yet.

    Credentials of https come from ONNXBUILD_REMOTE_TOKEN (a bearer token) or ~/.netrc; those of s3, gs and az from the
    variables that these services' own tools read.

    Args:
        url: `https://`, `s3://`, `gs://`, `az://` or `file://`.
        allow_http: Take `http://` of other machines than this one.
        where: What names the URL, for messages.

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
    headers = _headers(parts.scheme, parts.hostname or "", environment)
    if headers:
        options["default_headers"] = headers
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


def credentials_sent(url: str, environment: Mapping[str, str]) -> str:
    """Return which credentials go with requests, and where they are from, without their values.

    Args:
        url: The remote's.
        environment: This process's.
    """
    parts = urlsplit(url)
    variables = _SERVICE_VARIABLES.get(parts.scheme, (TOKEN_VARIABLE,))
    if found := [name for name in variables if environment.get(name)]:
        return f"the credentials in {found[0]}"
    if parts.scheme in ("http", "https"):
        if _headers(parts.scheme, parts.hostname or "", environment):
            return f"the login for {parts.hostname} in ~/.netrc"
        return f"no credentials: {TOKEN_VARIABLE} is not set, and ~/.netrc does not name {parts.hostname}"
    return f"no credentials of variables: {' and '.join(variables)} are not set"


def _is_local_service(environment: Mapping[str, str]) -> bool:
    endpoint = environment.get("AWS_ENDPOINT_URL") or environment.get("AWS_ENDPOINT") or ""
    return urlsplit(endpoint).hostname in _LOOPBACK


def _headers(scheme: str, host: str, environment: Mapping[str, str]) -> dict[str, str]:
    if scheme not in ("http", "https"):
        return {}
    token = environment.get(TOKEN_VARIABLE)
    if token:
        return {"authorization": f"Bearer {token}"}
    try:
        found = netrc.netrc().authenticators(host)
    except (OSError, netrc.NetrcParseError):
        return {}
    if found is None:
        return {}
    import base64

    login, _, password = found
    return {"authorization": "Basic " + base64.b64encode(f"{login}:{password}".encode()).decode()}
