"""One registry over HTTP: TLS, authentication, redirects, and what went wrong in words."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeVar
from urllib.parse import urljoin, urlsplit

from onnxbuild import __version__
from onnxbuild.adapters import clock
from onnxbuild.core.errors import BuildError
from onnxbuild.registry.access import RegistryAccess
from onnxbuild.registry.answer import SMALL_BYTES, Answer
from onnxbuild.registry.challenges import Challenge, challenges_in, read_token
from onnxbuild.registry.refusals import (
    KEEPING_S,
    TIMEOUT_S,
    RegistryUnavailableError,
    lost,
    no_url,
    refusal,
)
from onnxbuild.registry.repository import BlobSource

T = TypeVar("T")
_PAUSES_S = (0.5, 1.0, 2.0)
"""Between attempts: four in all."""
_LONGEST_PAUSE_S = 30.0
_HOPS_MAX = 8
_BLOCK_BYTES = 1 << 18
_REST_BYTES = 1 << 16
_REDIRECTS = (301, 302, 303, 307, 308)
_UNAUTHORIZED = 401
_TRANSIENT = (408, 429, 500, 502, 503, 504)
_LATER = "type the same command again later: what was moved so far is kept"


class Connection:
    """Requests to one registry.

    Args:
        registry: HOST or HOST:PORT.
        access: How it is reached.
        pause: Waits some seconds.
    """

    def __init__(
        self, registry: str, access: RegistryAccess, pause: Callable[[float], None] = clock.pause
    ) -> None:
        self._registry, self._access, self._pause = registry, access, pause
        host = "registry-1.docker.io" if registry == "docker.io" else registry
        self._base = f"{'http' if access.plain_http else 'https'}://{host}"
        self._origin = _origin(self._base)
        self._authorization = ""
        self._idle: dict[tuple[str, str, int], http.client.HTTPConnection] = {}
        self._tls: ssl.SSLContext | None = None

    def close(self) -> None:
        """Let go of open connections."""
        for connection in self._idle.values():
            connection.close()
        self._idle.clear()

    def retried(self, action: Callable[[], T]) -> T:
        """Return what an action gives; try again where the registry can't be reached for a moment.

        Raises:
            RegistryUnavailableError: It could not be reached four times.
        """
        for pause_s in _PAUSES_S:
            try:
                return action()
            except RegistryUnavailableError as error:
                self._pause(min(max(error.after_s, pause_s), _LONGEST_PAUSE_S))
        return action()

    @contextmanager
    def exchange(
        self,
        method: str,
        url: str,
        *,
        body: Callable[[], BlobSource] | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Iterator[Answer]:
        """Send a request; what an answer's status says is the caller's to judge, but those that may pass.

        Args:
            method: HTTP's.
            url: Whole, or below the registry's root. Only the registry itself is sent credentials.
            body: Content, or what opens it: a request may be sent again.
            headers: Besides Authorization and the like.

        Raises:
            RegistryUnavailableError: The registry can't be reached, broke off, or says that it can't serve now.
            BuildError: It can't be reached in this way at all.
        """
        try:
            target = urljoin(self._base, url)
            connection, answer = self._answered(method, target, body, headers or {})
        except ValueError as error:
            raise no_url(self._registry) from error
        try:
            self._check_available(answer)
            yield answer
        except (OSError, http.client.HTTPException) as error:
            raise lost(self._registry, error) from error
        finally:
            self._let_go(connection, answer)

    def fault(self, answer: Answer) -> BuildError:
        """Return what to say of an answer that is a refusal."""
        said = answer.read(SMALL_BYTES)
        return refusal(
            self._registry, answer.status, said, self._access.credentials, answer.method
        )

    def _check_available(self, answer: Answer) -> None:
        if answer.status in _TRANSIENT:
            found = self.fault(answer)
            raise RegistryUnavailableError(
                found.what, where=found.where, fix=_LATER, after_s=_seconds(answer)
            )

    def _answered(
        self,
        method: str,
        url: str,
        body: Callable[[], BlobSource] | bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[http.client.HTTPConnection, Answer]:
        """Follow redirects, and authenticate where it is asked for."""
        asked = 0
        for _ in range(_HOPS_MAX):
            is_own = _origin(url) == self._origin
            sent = dict(headers)
            if is_own and self._authorization:
                sent["Authorization"] = self._authorization
            connection, answer = self._once(method, url, body, sent)
            with ExitStack() as unless_returned:
                unless_returned.callback(self._let_go, connection, answer)
                if is_own and answer.status == _UNAUTHORIZED and asked <= 1:
                    asked += 1
                    asks = answer.response.headers.get_all("WWW-Authenticate", [])
                    if self._is_authorized_for(
                        challenges_in(asks), used=sent.get("Authorization", "")
                    ):
                        continue
                if answer.status in _REDIRECTS and method in ("GET", "HEAD"):
                    url = self._redirected(url, answer.header("Location"))
                    continue
                unless_returned.pop_all()
            return connection, answer
        raise BuildError("the registry redirects in circles", where=self._registry)

    def _redirected(self, url: str, location: str) -> str:
        found = urljoin(url, location)
        scheme = urlsplit(found).scheme
        if scheme not in ("http", "https") or (scheme == "http" and self._origin[0] == "https"):
            raise BuildError("the registry redirects to a place without TLS", where=self._registry)
        return found

    def _is_authorized_for(self, challenges: tuple[Challenge, ...], used: str) -> bool:
        """Take up a challenge; return whether there is an authorization that was not sent yet."""
        credentials = self._access.credentials
        for challenge in challenges:
            if challenge.scheme == "bearer":
                self._authorization = f"Bearer {self._token(challenge)}"
                return self._authorization != used
        if credentials.username and any(each.scheme == "basic" for each in challenges):
            self._authorization = credentials.basic
            return self._authorization != used
        return False

    def _token(self, challenge: Challenge) -> str:
        """Ask the registry's token service.

        Source: https://distribution.github.io/distribution/spec/auth/token/.
        """
        url, credentials = challenge.token_url(), self._access.credentials
        if urlsplit(url).scheme != "https" and self._origin[0] == "https":
            raise BuildError("the registry's token service has no TLS", where=self._registry)
        headers = {"Authorization": credentials.basic} if credentials.username else {}
        connection, answer = self._once("GET", url, None, headers)
        try:
            self._check_available(answer)
            content = answer.content()
        except (OSError, http.client.HTTPException) as error:
            raise lost(self._registry, error) from error
        finally:
            self._let_go(connection, answer)
        if answer.status != http.client.OK:
            raise refusal(self._registry, answer.status, content, credentials)
        return read_token(content, self._registry)

    def _once(
        self,
        method: str,
        url: str,
        body: Callable[[], BlobSource] | bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[http.client.HTTPConnection, Answer]:
        origin, parts = _origin(url), urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        try:
            connection = self._idle.pop(origin, None) or self._connection(origin)
        except http.client.InvalidURL as error:
            raise no_url(self._registry) from error
        sent = {"User-Agent": f"onnxbuild/{__version__}", **headers}
        waited_s = TIMEOUT_S
        try:
            content = body() if callable(body) else body
            try:
                connection.request(method, target, content, sent)
            except (BrokenPipeError, ConnectionResetError):
                if content is None:
                    raise  # else it may have answered before it had all of the body
            if content is not None and connection.sock is not None:
                waited_s = KEEPING_S
                connection.sock.settimeout(waited_s)
            response = connection.getresponse()
            if connection.sock is not None:
                connection.sock.settimeout(TIMEOUT_S)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise lost(self._registry, error, waited_s) from error
        except BaseException:
            connection.close()
            raise
        return connection, Answer(response.status, response, url, method)

    def _connection(self, origin: tuple[str, str, int]) -> http.client.HTTPConnection:
        scheme, host, port = origin
        if scheme == "http":
            return http.client.HTTPConnection(
                host, port, timeout=TIMEOUT_S, blocksize=_BLOCK_BYTES
            )
        if self._tls is None:
            self._tls = self._access.tls_context()
        return http.client.HTTPSConnection(
            host, port, timeout=TIMEOUT_S, context=self._tls, blocksize=_BLOCK_BYTES
        )

    def _let_go(self, connection: http.client.HTTPConnection, answer: Answer) -> None:
        """Keep a connection whose answer was read to its end, for the next request."""
        with suppress(OSError, http.client.HTTPException):
            if (answer.response.length or 0) <= _REST_BYTES:
                answer.read(_REST_BYTES)
        is_at_end = answer.response.isclosed() and not answer.response.length
        origin = _origin(answer.url)
        if is_at_end and connection.sock is not None and origin not in self._idle:
            self._idle[origin] = connection
        else:
            connection.close()


def _origin(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        port = None
    return parts.scheme, parts.hostname or "", port or (80 if parts.scheme == "http" else 443)


def _seconds(answer: Answer) -> float:
    text = answer.header("Retry-After")
    return float(text) if text.isascii() and text.isdigit() else 0.0
