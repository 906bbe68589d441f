"""The commands of docs/remote.md and docs/cluster.md, as a reader types them, with the servers and addresses of this machine."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import onnx
import pytest

from tests.adapters.remote.servers import free_port, nginx
from tests.onnxkit.models import linear
from tests.pages import ROOT, environment, said

pytestmark = pytest.mark.slow

_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
RECIPE = """\
version: 1
name: bert
model: {onnx: bert.onnx}
quantization: {fp32: none}
benchmark: {measure: false}
"""


def blocks(page: str, section: str) -> list[tuple[str, str]]:
    """(language, text) of each block in a section of a page."""
    text = (ROOT / page).read_text()
    part = text[text.index(f"## {section}\n") :].partition("\n## ")[0]
    return [
        (language, re.sub(rf"^{indent}", "", block, flags=re.MULTILINE))
        for indent, language, block in _BLOCK.findall(part)
    ]


def write_project(folder: Path) -> Path:
    (folder / "recipes").mkdir(parents=True)
    (folder / "keys").mkdir()
    (folder / "pyproject.toml").write_text("")
    (folder / "recipes/bert.yaml").write_text(RECIPE)
    onnx.save(linear(), folder / "recipes/bert.onnx")
    return folder


@contextmanager
def running(command: str, folder: Path, environ: Mapping[str, str], log: Path) -> Iterator[None]:
    """Run a command until the block ends."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"], cwd=folder, env=environ, stdout=out, stderr=out
        )
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


def test_a_team_has_a_cache_in_five_minutes(tmp_path):
    (_, make_keys), (_, settings), (_, in_ci) = blocks("docs/remote.md", "In five minutes")
    project = write_project(tmp_path / "ci")
    with nginx(tmp_path / "server") as (url, _):
        code, text = said(make_keys, project, environment())
        assert code == 0, text
        settings = settings.replace("https://cache.example/team", url)
        assert url in settings
        (project / "pyproject.toml").write_text(settings)
        laptop = shutil.copytree(project, tmp_path / "laptop")
        (laptop / "cache.pem").unlink()
        in_ci = in_ci.replace("/run/secrets/cache.pem", "cache.pem")
        code, text = said(in_ci, project, environment(CI="true"))
        assert (code, "cache.pem" in in_ci) == (0, True), text
        home = str(tmp_path / "home")
        code, text = said("onnxbuild run recipes/bert.yaml", laptop, environment(HOME=home, CI=""))
        assert code == 0, text
        assert "ok: 0 built" in text
        assert f"came from {url}" in text
        code, text = said("onnxbuild cache stats --remote", laptop, environment(HOME=home))
        assert code == 0, text
        found = re.search(r"this project (\d+) of (\d+) results are there", text)
        assert found, text
        assert found[1] == found[2]
        code, text = said("onnxbuild cache gc --remote --dry-run", laptop, environment(HOME=home))
        assert code == 2
        assert "is a plain HTTP server, which lists nothing" in text


def test_a_cluster_runs_in_ten_minutes(tmp_path):
    pytest.importorskip("distributed")
    shown = blocks("docs/cluster.md", "In ten minutes")
    (certificates, scheduler, worker, build) = (
        text.removeprefix("$ ").strip() for language, text in shown if language == "console"
    )
    (tls,) = (text for language, text in shown if language == "yaml")
    port = str(free_port())

    def here(command: str) -> str:
        command = command.replace("10.0.0.5", "127.0.0.1").replace("8786", port)
        return command.replace("10.0.0.7", "127.0.0.1")

    project = write_project(tmp_path / "project")
    code, text = said(certificates, tmp_path, environment())
    assert code == 0, text
    (tmp_path / "dask").mkdir()
    (tmp_path / "dask/tls.yaml").write_text(tls.replace("/etc/onnxbuild", str(tmp_path)))
    environ = environment(DASK_CONFIG=str(tmp_path / "dask"))
    log = tmp_path / "log"
    with ExitStack() as cleanup:
        for command in (here(scheduler), f"{here(worker)} --store {tmp_path}/worker-store"):
            cleanup.enter_context(running(command, project, environ, log))
        deadline = time.monotonic() + 60
        while "steps at a time" not in log.read_text():
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.2)
        code, text = said(here(build), project, environ)
    assert code == 0, text
    assert "1 worker at tls://127.0.0.1" in text
    assert "ok: " in text
