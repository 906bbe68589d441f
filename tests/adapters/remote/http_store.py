"""A store over HTTP that misbehaves on demand: one process's thread, on loopback."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class HttpStore:
    """Objects by path, served with one fault.

    Attributes:
        objects: Path below the root -> content.
        fault: `""`, or what answers to GET are: a status such as `500`, `hang`, `slow`, `steady` (slower than at once, fast enough), `cut`, `flip`, `longer`.
        hang_puts: Uploads get no answer.
        refused: Uploads to paths with this text are refused.
        round_trip_s: How long each answer to GET takes.
        requests: (method, path) in the order of arrival.
        authorizations: The Authorization header of each GET; empty if it has none.
    """

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.fault = ""
        self.refuse_puts = self.hang_puts = False
        self.refused = "nothing"
        self.round_trip_s = 0.0
        self.requests: list[tuple[str, str]] = []
        self.authorizations: list[str] = []
        self.over = threading.Event()
        self.url = ""


@contextmanager
def serving() -> Iterator[HttpStore]:  # noqa: C901 - one handler, a branch for each fault
    """Serve until the block ends."""
    store = HttpStore()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: object) -> None:
            pass

        def _head(self, status: int, size: int = 0) -> None:
            self.send_response(status)
            self.send_header("content-length", str(size))
            self.send_header("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            self.end_headers()

        def do_HEAD(self) -> None:
            store.requests.append(("HEAD", self.path))
            content = store.objects.get(self.path)
            self._head(404 if content is None else 200, len(content or b""))

        def do_PUT(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            store.requests.append(("PUT", self.path))
            if store.hang_puts:
                store.over.wait(60)
            if store.refuse_puts or store.refused in self.path:
                return self._head(507)
            store.objects[self.path] = content
            return self._head(201)

        def do_GET(self) -> None:
            store.requests.append(("GET", self.path))
            store.authorizations.append(self.headers.get("authorization", ""))
            content = store.objects.get(self.path)
            store.over.wait(store.round_trip_s)
            if store.fault == "hang":
                store.over.wait(60)
            if store.fault.isdigit():
                return self._head(int(store.fault))
            if content is None:
                return self._head(404)
            if store.fault == "flip":
                content = bytes([content[0] ^ 1]) + content[1:]
            if store.fault == "longer":
                content += b"more"
            self._head(200, len(content))
            if store.fault == "cut":
                self.wfile.write(content[:-1])
                self.close_connection = True
            elif store.fault == "slow":
                for at in range(0, len(content), 1024):
                    if store.over.wait(0.1):
                        return None
                    self.wfile.write(content[at : at + 1024])
            elif store.fault == "steady":
                for at in range(0, len(content), 1 << 18):
                    store.over.wait(0.1)
                    self.wfile.write(content[at : at + (1 << 18)])
            else:
                self.wfile.write(content)
            return None

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                self.close_connection = True

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    store.url = f"http://127.0.0.1:{server.server_port}/cache"
    try:
        yield store
    finally:
        store.over.set()
        server.shutdown()
        server.server_close()
