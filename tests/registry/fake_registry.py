"""A registry in this process, which can misbehave: the part of the distribution protocol that push and pull use."""

import base64
import hashlib
import json
import re
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

PLACE = re.compile(
    r"/v2/(?P<name>.+)/(?P<what>blobs/uploads|blobs|manifests|referrers)/(?P<rest>[^/]*)"
)
TOKEN = "a-token"


@dataclass
class Behaviour:
    """How it differs from a registry that works.

    Attributes:
        user: NAME:PASSWORD that it asks for, by Basic; empty for nobody.
        tokens: It asks for tokens of its own service, which asks for `user`.
        referrers_api: It has one.
        no_referrers: What it answers where it has none.
        referrers_a_page: How many it lists at once; 0 for all.
        raw_answers: Part of a path -> what it sends in place of each answer there, part by part.
        statuses: (method, part of the path) -> statuses to answer with, one a request, before it works again.
        retry_after: The wait that it asks for with these.
        cut_uploads: How many uploads it breaks off in their middle.
        cut_downloads: How many downloads of blobs it breaks off in their middle.
        cut_answers: Part of a path -> how many of the answers to a GET there it breaks off in their middle.
        stops_reading: It takes no more of an upload than what is on the way.
        ranges: It knows Range.
        altered: sha256 of blobs and manifests -> what it hands out instead.
        digest_header: It names a manifest's digest in Docker-Content-Digest, as most registries do.
        keeping_s: How long it is silent before it answers to a large blob.
        forgets: It says that it has taken blobs, and has not.
        blobs_at: Base URL of the server that blobs are at; empty for itself.
        uploads_to: Where it says that uploads go; empty for the right place.
        dies_after: Requests until it answers nothing any more.
    """

    user: str = ""
    tokens: bool = False
    referrers_api: bool = False
    no_referrers: int = 404
    referrers_a_page: int = 0
    statuses: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    retry_after: str = ""
    raw_answers: dict[str, Callable[[], Iterable[bytes]]] = field(default_factory=dict)
    cut_uploads: int = 0
    cut_downloads: int = 0
    cut_answers: dict[str, int] = field(default_factory=dict)
    stops_reading: bool = False
    ranges: bool = True
    altered: dict[str, bytes] = field(default_factory=dict)
    digest_header: bool = False
    keeping_s: float = 0.0
    forgets: bool = False
    blobs_at: str = ""
    dies_after: int = 10**9
    uploads_to: str = ""


class FakeRegistry:
    """Starts at once, on a port that is free.

    Args:
        certificate: With its key, PEM; None for no TLS.
    """

    def __init__(self, certificate: Path | None = None) -> None:
        self.behaviour = Behaviour()
        self.blobs: dict[tuple[str, str], bytes] = {}
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.count: Counter[str] = Counter()
        fake = self

        class Handler(_Handler):
            registry = fake

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()

    def stop(self) -> None:
        """Nothing listens any more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def tags(self, name: str) -> set[str]:
        return {key for repo, key in self.manifests if repo == name and ":" not in key}


class _Handler(BaseHTTPRequestHandler):
    registry: FakeRegistry
    protocol_version = "HTTP/1.1"
    timeout = 5
    disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve()

    do_HEAD = do_POST = do_PUT = do_GET  # noqa: N815 - the names that http.server looks for

    # --- what every request goes through -----------------------------------------------------------------

    def _serve(self) -> None:
        fake, behave = self.registry, self.registry.behaviour
        fake.requests.append((self.command, self.path, dict(self.headers)))
        fake.count[self.command] += 1
        if len(fake.requests) > behave.dies_after:
            self._hang_up()
            return
        if self.path.startswith("/token"):
            self._token()
            return
        if not self._is_allowed():
            return
        for part, contents in behave.raw_answers.items():
            if part in self.path:
                self._skip_body()
                with suppress(OSError):  # the other side has had enough
                    for content in contents():
                        self.wfile.write(content)
                self._hang_up()
                return
        for (method, part), statuses in behave.statuses.items():
            if method == self.command and part in self.path and statuses:
                self._skip_body()
                waits = {"Retry-After": behave.retry_after} if behave.retry_after else {}
                self._error(statuses.pop(0), "UNAVAILABLE", "not now", waits)
                return
        found = PLACE.match(urlsplit(self.path).path)
        if found is None:
            self._error(404, "NOT_FOUND", "no such page")
            return
        what = found["what"].replace("/", "_")
        getattr(self, f"_{self.command.lower()}_{what}")(found["name"], found["rest"])

    def _is_allowed(self) -> bool:
        behave = self.registry.behaviour
        sent = self.headers.get("Authorization", "")
        if behave.tokens:
            if sent == f"Bearer {TOKEN}":
                return True
            how = f'Bearer realm="http://{self.registry.host}/token",service="fake",scope="repository:x:pull,push"'
        elif behave.user:
            if sent == f"Basic {base64.b64encode(behave.user.encode()).decode()}":
                return True
            how = 'Basic realm="fake"'
        else:
            return True
        self._skip_body()
        self._error(401, "UNAUTHORIZED", "authentication required", {"WWW-Authenticate": how})
        return False

    def _token(self) -> None:
        sent, behave = self.headers.get("Authorization", ""), self.registry.behaviour
        busy = behave.statuses.get(("GET", "/token"))
        if busy:
            self._error(busy.pop(0), "UNAVAILABLE", "not now")
            return
        if behave.user and sent != f"Basic {base64.b64encode(behave.user.encode()).decode()}":
            self._error(401, "UNAUTHORIZED", "wrong password")
            return
        assert parse_qs(urlsplit(self.path).query)["service"] == ["fake"]
        self._answer(200, json.dumps({"token": TOKEN}).encode())

    # --- blobs -------------------------------------------------------------------------------------------

    def _get_blobs(self, name: str, digest: str) -> None:
        fake, behave = self.registry, self.registry.behaviour
        content = fake.blobs.get((name, digest))
        if behave.blobs_at and self.command == "GET":
            self._answer(307, b"", {"Location": f"{behave.blobs_at}{self.path}"})
            return
        if content is None:
            self._error(404, "BLOB_UNKNOWN", "blob unknown to registry")
            return
        content = behave.altered.get(digest.removeprefix("sha256:"), content)
        start = (
            re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "")) if behave.ranges else None
        )
        extra = {}
        if start:
            extra["Content-Range"] = f"bytes {start[1]}-{len(content) - 1}/{len(content)}"
            content = content[int(start[1]) :]
        if behave.cut_downloads and self.command == "GET" and len(content) > 1000:
            behave.cut_downloads -= 1
            self._answer(206 if start else 200, content, extra, cut=len(content) // 2)
            return
        self._answer(206 if start else 200, content, extra)

    _head_blobs = _get_blobs

    def _post_blobs_uploads(self, name: str, _: str) -> None:
        self._skip_body()
        asked = parse_qs(urlsplit(self.path).query)
        if "mount" in asked and (asked["from"][0], asked["mount"][0]) in self.registry.blobs:
            digest = asked["mount"][0]
            self.registry.blobs[name, digest] = self.registry.blobs[asked["from"][0], digest]
            self._answer(201, b"")
            return
        own = f"/v2/{name}/blobs/uploads/1?state=secret-of-the-upload"
        self._answer(202, b"", {"Location": self.registry.behaviour.uploads_to or own})

    def _put_blobs_uploads(self, name: str, _: str) -> None:
        behave = self.registry.behaviour
        size = int(self.headers["Content-Length"])
        if behave.cut_uploads and size > 1000:
            behave.cut_uploads -= 1
            self.rfile.read(size // 2)
            self._hang_up()
            return
        if behave.stops_reading:
            time.sleep(3)
            self._hang_up()
            return
        content = self.rfile.read(size)
        digest = parse_qs(urlsplit(self.path).query)["digest"][0]
        if f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
            self._error(400, "DIGEST_INVALID", "provided digest did not match uploaded content")
            return
        if size > 1000:
            time.sleep(behave.keeping_s)
        if not behave.forgets:
            self.registry.blobs[name, digest] = content
        self.registry.count["blobs"] += 1
        self._answer(201, b"")

    # --- manifests ---------------------------------------------------------------------------------------

    def _get_manifests(self, name: str, target: str) -> None:
        kind, content = self.registry.manifests.get((name, target), ("", b""))
        if not kind:
            self._error(404, "MANIFEST_UNKNOWN", "manifest unknown")
            return
        sha256 = hashlib.sha256(content).hexdigest()
        headers = {"Content-Type": kind}
        if self.registry.behaviour.digest_header:
            headers["Docker-Content-Digest"] = f"sha256:{sha256}"
        self._answer(200, self.registry.behaviour.altered.get(sha256, content), headers)

    def _put_manifests(self, name: str, target: str) -> None:
        content = self.rfile.read(int(self.headers["Content-Length"]))
        value = json.loads(content)
        needed = [
            each["digest"] for each in (value.get("config"), *value.get("layers", [])) if each
        ]
        missing = [each for each in needed if (name, each) not in self.registry.blobs]
        listed = [each["digest"] for each in value.get("manifests", [])]
        missing += [each for each in listed if (name, each) not in self.registry.manifests]
        if missing:
            self._error(400, "MANIFEST_BLOB_UNKNOWN", f"blob unknown to registry: {missing[0]}")
            return
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        for key in {digest, target}:
            self.registry.manifests[name, key] = (self.headers["Content-Type"], content)
        subject = value.get("subject") if self.registry.behaviour.referrers_api else None
        self._answer(201, b"", {"OCI-Subject": subject["digest"]} if subject else {})

    def _get_referrers(self, name: str, digest: str) -> None:
        digest = digest.partition("?")[0]
        if not self.registry.behaviour.referrers_api:
            self._error(self.registry.behaviour.no_referrers, "NOT_FOUND", "no such page")
            return
        found = []
        for (repo, key), (kind, content) in self.registry.manifests.items():
            value = json.loads(content)
            if repo == name and ":" in key and value.get("subject", {}).get("digest") == digest:
                found.append(
                    {
                        "mediaType": kind,
                        "digest": key,
                        "size": len(content),
                        "artifactType": value["artifactType"],
                    }
                )
        size, links = self.registry.behaviour.referrers_a_page, {}
        start = int(self.path.partition("?start=")[2] or 0)
        if size and len(found) > start + size:
            links["Link"] = f'</v2/{name}/referrers/{digest}?start={start + size}>; rel="next"'
        shown = found[start : start + size] if size else found
        content = json.dumps({"schemaVersion": 2, "manifests": shown}).encode()
        self._answer(200, content, links)

    # --- answers -----------------------------------------------------------------------------------------

    def _answer(
        self,
        status: int,
        content: bytes,
        headers: dict[str, str] | None = None,
        cut: int | None = None,
    ) -> None:
        cuts = self.registry.behaviour.cut_answers
        for part in cuts if self.command == "GET" else ():
            if part in self.path and cuts[part]:
                cuts[part] -= 1
                cut = len(content) // 2
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content[:cut])
        if cut is not None:
            self._hang_up()

    def _error(
        self, status: int, code: str, text: str, headers: dict[str, str] | None = None
    ) -> None:
        content = json.dumps({"errors": [{"code": code, "message": text}]}).encode()
        self._answer(status, content, headers)

    def _skip_body(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _hang_up(self) -> None:
        with suppress(OSError):
            self.wfile.flush()
        self.close_connection = True
