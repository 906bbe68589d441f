"""A registry of npm's packages for tests: real HTTP, packages made here."""

import base64
import hashlib
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


def package(name: str, version: str, files: Mapping[str, str], **more: object) -> bytes:
    """A package's .tgz."""
    content = {"package.json": json.dumps({"name": name, "version": version, **more}), **files}
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for path, text in content.items():
            member = tarfile.TarInfo(f"package/{path}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return made.getvalue()


def integrity(archive: bytes) -> str:
    """Its hash, as npm writes it."""
    return f"sha512-{base64.b64encode(hashlib.sha512(archive).digest()).decode()}"


def write_list(path: Path, archives: Mapping[str, bytes], version: str = "1.0.0") -> Path:
    """A package-lock.json that asks for all of them."""
    entries: dict[str, object] = {"": {"dependencies": dict.fromkeys(archives, version)}}
    for name, archive in archives.items():
        entries[f"node_modules/{name}"] = {"version": version, "integrity": integrity(archive)}
    listed = {"name": "listed", "lockfileVersion": 3, "requires": True, "packages": entries}
    path.write_text(json.dumps(listed))
    return path


@contextmanager
def serving(archives: Mapping[str, bytes], version: str = "1.0.0") -> Iterator[str]:
    """Serve packages; gives the registry's address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name, _, rest = self.path.strip("/").partition("/")
            archive = archives.get(name)
            if archive is None:
                self.send_error(404)
                return
            dist = {"tarball": f"{base}/{name}/it.tgz", "integrity": integrity(archive)}
            about = {"name": name, "version": version, "dist": dist}
            described = {
                "name": name,
                "versions": {version: about},
                "dist-tags": {"latest": version},
            }
            content = archive if rest else json.dumps(described).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    base = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield base
    finally:
        server.shutdown()
        server.server_close()
