"""One registry over HTTP: authentication, redirects, retries, and what went wrong in words."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from typing import TypeVar
from urllib.parse import urljoin

from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError, InvalidHeader
from urllib3.util import Retry, parse_url

from onnxbuild import __version__
from onnxbuild.adapters import clock
from onnxbuild.core.errors import BuildError
from onnxbuild.registry.access import RegistryAccess
from onnxbuild.registry.challenges import challenges_in, read_token, token_url
from onnxbuild.registry.refusals import RegistryUnavailableError, lost, refusal
from onnxbuild.registry.repository import BlobSource, Report
from onnxbuild.registry.transport import SMALL_BYTES, Pace, Sent, open_pools, read_body

T = TypeVar("T")
_PAUSES_S = (0.5, 1.0, 2.0)
"""Between attempts: four in all."""
_LONGEST_PAUSE_S, _ALL_PAUSES_S = 60.0, 600.0
_HOPS_MAX = 8
_REST_S = 1.0
"""Seconds that the end of an answer may take, for its connection to serve the next request."""
_REDIRECTS = (301, 302, 303, 307, 308)
_OK, _UNAUTHORIZED = 200, 401
_TRANSIENT = (408, 429, 500, 502, 503, 504)
_LATER = "type the same command again later: what was moved so far is kept"


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request.

    Attributes:
        method: HTTP's.
        url: Whole, or below the registry's root. Only the registry itself is sent credentials.
        expected: Statuses that are no refusal.
        headers: Besides Authorization and the like.
        body: Content, or what opens it: a request may be sent again.
        report: Takes how much of the content was sent.
        limit_bytes: The longest body of an answer.
    """

    method: str
    url: str
    expected: tuple[int, ...]
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Callable[[], BlobSource] | bytes | None = None
    report: Report = lambda _: None
    limit_bytes: int = SMALL_BYTES


class Connection:
    """Requests to one registry.

    Args:
        access: How it is reached.
        pause: Waits some seconds.
        pace: What requests keep to.

    Raises:
        UsageError: The file of certificates holds none.
    """

    def __init__(
        self,
        registry: str,
        access: RegistryAccess,
        pause: Callable[[float], None] = clock.pause,
        pace: Pace | None = None,
    ) -> None:
        self._registry, self._access, self._pause = registry, access, pause
        self._pace, self._pauses_left_s = pace or Pace(), _ALL_PAUSES_S
        host = "registry-1.docker.io" if registry == "docker.io" else registry
        self._base = f"{'http' if access.plain_http else 'https'}://{host}"
        is_plain = access.plain_http and access.ca_file is None
        self._pools = open_pools(self._pace, None if is_plain else access.tls_context())
        self._own = self._pools.connection_from_url(self._base)
        self._authorization = ""

    def close(self) -> None:
        """Let go of open connections."""
        self._pools.clear()

    def retried(self, action: Callable[[], T]) -> T:
        """Return what an action gives; try again where the registry can't be reached for a moment.

        Raises:
            RegistryUnavailableError: It could not be reached four times, or asks to wait for long.
        """
        for pause_s in _PAUSES_S:
            try:
                return action()
            except RegistryUnavailableError as error:
                wait_s = max(error.after_s, pause_s)
                self._pauses_left_s -= wait_s
                if wait_s > _LONGEST_PAUSE_S or self._pauses_left_s < 0:
                    raise
                self._pause(wait_s)
        return action()

    @contextmanager
    def exchange(self, request: HttpRequest) -> Iterator[BaseHTTPResponse]:
        """Send a request, and take an answer of an expected status.

        Raises:
            RegistryUnavailableError: The registry can't be reached, broke off, is too slow, or can't serve now.
            BuildError: It refuses, or can't be reached in this way at all.
        """
        try:
            with self._closed(self._answered(request)) as answer:
                self._check(answer, request)
                yield answer
        except HTTPError as error:
            inner = [
                each for each in (error.__cause__, *error.args) if isinstance(each, Exception)
            ]
            raise lost(self._registry, (*inner, error)[0]) from error

    def location(self, answer: BaseHTTPResponse) -> str:
        """Return the URL where an answer says to go on.

        Raises:
            BuildError: It says nothing, or names a place that nothing is sent to.
        """
        place = answer.headers.get("Location", "")
        if not place:
            raise BuildError("the registry does not say where to go on", where=self._registry)
        try:
            url = urljoin(answer.url or "", place)
            scheme = parse_url(url).scheme
        except ValueError as error:
            raise lost(self._registry, error) from error
        if scheme not in ("http", "https") or (scheme == "http" and not self._access.plain_http):
            raise BuildError("the registry names a place without TLS", where=self._registry)
        return url

    @contextmanager
    def _closed(self, answer: BaseHTTPResponse) -> Iterator[BaseHTTPResponse]:
        """Keep a connection whose answer was read to its end, for the next request."""
        try:
            yield answer
            self._pace.start(SMALL_BYTES, seconds=_REST_S)
            with suppress(HTTPError, BuildError):
                read_body(answer)
        finally:
            answer.close()

    def _check(self, answer: BaseHTTPResponse, request: HttpRequest) -> None:
        if answer.status in request.expected:
            return
        said, is_upload = answer.read1(SMALL_BYTES), request.body is not None
        found = refusal(
            self._registry, answer.status, said, self._access.credentials, is_upload=is_upload
        )
        if answer.status not in _TRANSIENT:
            raise found
        after_s = _seconds(answer)
        what = found.what + (f"; it asks to wait {after_s:.0f} s" if after_s else "")
        raise RegistryUnavailableError(what, where=found.where, fix=_LATER, after_s=after_s)

    def _answered(self, request: HttpRequest) -> BaseHTTPResponse:
        """Follow redirects, and authenticate where it is asked for."""
        url, asked = urljoin(self._base, request.url), 0
        for _ in range(_HOPS_MAX):
            is_own = self._own.is_same_host(url)
            used = self._authorization if is_own else ""
            answer = self._once(request, url, used)
            is_asked = is_own and answer.status == _UNAUTHORIZED and asked <= 1
            try:
                if is_asked and self._is_authorized_for(answer, used):
                    asked += 1
                elif answer.status in _REDIRECTS and request.method in ("GET", "HEAD"):
                    url = self.location(answer)
                else:
                    return answer
            except BaseException:
                answer.close()
                raise
            with self._closed(answer):
                pass
        raise BuildError("the registry redirects in circles", where=self._registry)

    def _is_authorized_for(self, answer: BaseHTTPResponse, used: str) -> bool:
        """Take up a challenge; return whether there is an authorization that was not sent yet."""
        challenges = challenges_in(answer.headers.getlist("WWW-Authenticate"))
        if "bearer" in challenges:
            self._authorization = f"Bearer {self._token(challenges['bearer'])}"
        elif "basic" in challenges and self._access.credentials.username:
            self._authorization = self._access.credentials.basic
        return self._authorization != used

    def _token(self, challenge: Mapping[str, str]) -> str:
        """Ask the registry's token service; one of another host has to have TLS.

        Source: https://distribution.github.io/distribution/spec/auth/token/.
        """
        credentials = self._access.credentials
        basic = credentials.basic if credentials.username else ""
        url = token_url(challenge)
        place = parse_url(url)
        is_own = self._access.plain_http and place.host == self._own.host
        if place.scheme != "https" and not is_own:
            raise BuildError("the registry's token service has no TLS", where=self._registry)
        request = HttpRequest("GET", url, (_OK,))
        with self._closed(self._once(request, url, basic)) as answer:
            self._check(answer, request)
            return read_token(read_body(answer), self._registry)

    def _once(self, request: HttpRequest, url: str, authorization: str) -> BaseHTTPResponse:
        body = request.body() if callable(request.body) else request.body
        headers = {"User-Agent": f"onnxbuild/{__version__}", **request.headers}
        if authorization:
            headers["Authorization"] = authorization
        if isinstance(body, bytes):
            headers["Content-Length"], body = str(len(body)), BytesIO(body)
        self._pace.start(request.limit_bytes, is_upload=bool(request.body))
        answer = self._pools.urlopen(
            request.method,
            url,
            redirect=False,
            body=None if body is None else Sent(body, self._pace, request.report),
            headers=headers,
            preload_content=False,
            decode_content=False,
        )
        answer.url = url
        return answer


def _seconds(answer: BaseHTTPResponse) -> float:
    """The wait that an answer asks for; 0 if it asks for none."""
    try:
        asked = answer.headers.get("Retry-After", "")
        return Retry(retry_after_max=10**9).parse_retry_after(asked)
    except (InvalidHeader, ValueError):
        return 0.0
