"""A docker-registry in a process of its own, and the other tools of tests/install_servers.sh."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.servers import missing

ROOT = Path(__file__).parents[2]
TRIES = 3
USER, PASSWORD = "ann", "a-password"
HTPASSWD = "ann:$2b$05$abcdefghijklmnopqrstuubsRD.Ffj/ka0r3BpAjv57rF8oK.y5YW"
CONFIG = """\
version: 0.1
log: {level: error, accesslog: {disabled: true}}
storage: {filesystem: {rootdirectory: %(data)s}, maintenance: {readonly: {enabled: %(readonly)s}, uploadpurging: {enabled: false}}}
http: {addr: "127.0.0.1:%(port)d"%(tls)s}
%(auth)s
"""


def tool(name: str) -> str:
    """Path of a tool; the test is skipped where it is missing."""
    own = ROOT / ".servers/usr/bin" / name
    found = str(own) if own.is_file() else shutil.which(name)
    if found is None:
        missing(name)
    return found


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


class Server:
    """A docker-registry in a process of its own, on a port that stays the same."""

    def __init__(self, folder: Path, certificate: Path | None = None) -> None:
        self.folder, self.data = folder, folder / "data"
        folder.mkdir(parents=True)
        (folder / "htpasswd").write_text(HTPASSWD)
        self.port, self._has_run = free_port(), False
        self.tls = (
            f", tls: {{certificate: {certificate}, key: {certificate}}}" if certificate else ""
        )
        self.auth = (
            f"auth: {{htpasswd: {{realm: a, path: {folder}/htpasswd}}}}" if certificate else ""
        )
        self._process: subprocess.Popen[bytes] | None = None
        self._binary = tool("docker-registry")

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self, *, readonly: bool = False) -> Server:
        """Start it. Where somebody else took its port before its first start, it has another one."""
        for _ in range(TRIES):
            if self._is_up(readonly=readonly):
                self._has_run = True
                return self
            if self._has_run:
                break
            self.port = free_port()
        raise AssertionError((self.folder / "log").read_text())

    def _is_up(self, *, readonly: bool) -> bool:
        values = {"data": self.data, "port": self.port, "tls": self.tls, "auth": self.auth}
        config = CONFIG % {**values, "readonly": str(readonly).lower()}
        (self.folder / "config.yml").write_text(config)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._binary, "serve", str(self.folder / "config.yml")], stdout=log, stderr=log
            )
        for _ in range(2400):
            if self._process.poll() is not None:
                return False
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    break
            time.sleep(0.05)
        return self._process.poll() is None

    def send(self, number: int) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def blob(self, sha256: str) -> Path:
        return self.data / f"docker/registry/v2/blobs/sha256/{sha256[:2]}/{sha256}/data"
