"""Serve this folder with the headers that WebAssembly needs for threads: `python serve.py [--port 8000]`.

Any static server does; this one sends Cross-Origin-Opener-Policy and Cross-Origin-Embedder-Policy, without
which browsers give a page no shared memory, and the model runs on one thread.
"""

import argparse
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Handler(SimpleHTTPRequestHandler):
    """Files with their types, cross-origin isolation, and no stale copies in the browser."""

    extensions_map = {
        **SimpleHTTPRequestHandler.extensions_map,
        ".js": "text/javascript",
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def end_headers(self):
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cache-Control", "no-cache")
        super().end_headers()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 for all networks")
    parser.add_argument("--port", type=int, default=8000, help="0 for any that is free")
    asked = parser.parse_args()
    handler = partial(Handler, directory=str(Path(__file__).resolve().parent))
    try:
        server = ThreadingHTTPServer((asked.host, asked.port), handler)
    except OSError as error:
        return f"port {asked.port} can't be opened: {error.strerror}; try --port {asked.port + 1}"
    print(f"http://{asked.host}:{server.server_address[1]}/ (Ctrl-C ends it)", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        return None


if __name__ == "__main__":
    sys.exit(main())
