"""Real servers of remote stores on loopback: nginx with docs/remote/nginx.conf, and rclone's S3 gateway."""

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.servers import missing

CONF = Path(__file__).parents[3] / "docs/remote/nginx.conf"


def _program(name: str) -> str:
    installed = Path(sys.executable).with_name(name)
    return (
        str(installed)
        if installed.exists()
        else shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") or missing(name)
    )


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return int(bound.getsockname()[1])


def _await(port: int) -> None:
    for _ in range(200):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"nothing listens on {port}")


@contextmanager
def _running(command: list[str], port: int, log: Path) -> Iterator[None]:
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as server:
        try:
            _await(port)
            yield
        finally:
            server.terminate()


@contextmanager
def nginx(folder: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the URL and the variables of a client; without TLS, which loopback needs not."""
    if not shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin"):
        pytest.skip("nginx is not installed: tests/install_servers.sh")
    program = _program("nginx")
    port = free_port()
    for name in ("tmp", "objects"):
        (folder / name).mkdir(parents=True)
    text = (
        CONF.read_text()
        .replace("/srv/onnxbuild", str(folder))
        .replace("443 ssl", f"127.0.0.1:{port}")
    )
    text = text.replace("10.0.0.0/8", "127.0.0.1")
    kept = [line for line in text.splitlines() if "ssl_certificate" not in line]
    user = ["user root;"] if os.geteuid() == 0 else []
    conf = folder / "nginx.conf"
    conf.write_text(
        "\n".join(
            ["daemon off;", f"pid {folder}/pid;", f"error_log {folder}/error.log;", *user, *kept]
        )
    )
    with _running([program, "-c", str(conf), "-p", str(folder)], port, folder / "log"):
        yield f"http://127.0.0.1:{port}/team", {}


@contextmanager
def s3(folder: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the URL and the variables of a client."""
    program = _program("rclone")
    port = free_port()
    (folder / "data/bucket").mkdir(parents=True)
    key, secret = "onnxbuildtestkey0000", "onnxbuildtestsecret0"
    command = [
        program, "serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", f"{key},{secret}",
        "--config", os.devnull, str(folder / "data"),
    ]  # fmt: skip
    with _running(command, port, folder / "log"):
        yield (
            "s3://bucket/team",
            {
                "AWS_ACCESS_KEY_ID": key,
                "AWS_SECRET_ACCESS_KEY": secret,
                "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
                "AWS_REGION": "us-east-1",
            },
        )


SERVERS = {"nginx": nginx, "s3": s3}
