"""The commands of docs/registry.md, with a real registry and skopeo."""

import shutil

import pytest

from tests.cli.conftest import Project
from tests.pages import ROOT, assert_shown, commands, environment, said
from tests.registry.conftest import Keys
from tests.registry.test_real_registry import Server, tool

PAGE = "docs/registry.md"
COMMANDS = 5
REGISTRIES = """\
[[registry]]
location = "%s"
insecure = true
"""


@pytest.mark.slow
def test_the_page_shows_what_the_commands_print(tmp_path):
    tool("skopeo")
    server = Server(tmp_path / "registry").start()
    try:
        project = Project(tmp_path / "project", patience_s=300)
        shutil.copytree(ROOT / "recipes/models", project.folder / "recipes/models")
        shutil.copy(ROOT / "recipes/digits.yaml", project.folder / "recipes")
        project.write("pyproject.toml", "")
        keys = Keys(tmp_path, "own")
        keys.private.rename(project.folder / "private.pem")
        keys.public.rename(project.folder / "public.pem")
        built = project("run", "recipes/digits.yaml", "--only", "int8")
        assert built.code == 0, built.err
        home = project.write(".config/containers/registries.conf", REGISTRIES % server.host)
        environ = environment()
        for_skopeo = environment(HOME=str(home.parents[2]))
        found = list(commands(PAGE))
        assert len(found) == COMMANDS
        for command, shown in found:
            there = command.replace("registry.example.org", server.host)
            there = there.replace("localhost:5000", server.host)
            own = for_skopeo if command.startswith("skopeo") else environ
            code, printed = said(there, project.folder, own)
            assert code == 0, f"$ {there}\n{printed}"
            assert_shown(command, shown, printed.replace(server.host, "localhost:5000"))
    finally:
        server.kill()
