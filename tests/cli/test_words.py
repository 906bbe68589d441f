"""What the real command prints, all of it: through a pipe, and on a terminal of 80 columns.

The promises of the terminal one by one are in tests/golden/words/, of cheap kinds in this process; these are
processes of their own, with the answers that take neither click nor a graph.
"""

from __future__ import annotations

import os
import shlex
import shutil

import pytest

from onnxbuild.adapters.clock import settle
from tests.cli.conftest import Project, make_project
from tests.terminal import Terminal
from tests.warm_commands import run as run_command_of

pytestmark = pytest.mark.slow

SAID = {
    "run tiny.yaml --only fp3": (
        2,
        (
            "error: --only fp3 is no variant or step of these recipes; the nearest of 9 are fp32, fp32/check and fp32/package\n"
            "  fix: write one of them; to see all: onnxbuild graph tiny.yaml\n"
        ),
        (
            "error: --only fp3 is no variant or step of these recipes; the nearest of 9 are\n"
            "       fp32, fp32/check and fp32/package\n"
            "  fix: write one of them; to see all: onnxbuild graph tiny.yaml\n"
        ),
    ),
    "lint tiny.yaml": (0, "ok: tiny (8 steps)\n", ""),
    "run tiny.yaml": (
        0,
        ("in artifacts/out/RECIPE/VARIANT/\nup to date: 8 steps, nothing to do\n"),
        "",
    ),
}
"""Command -> exit code, what it prints, and that on a terminal where it differs."""

MEASURED = ("recipe  ", "tiny    ", "? measured")
"""What the lines of a table begin with: its numbers are those of this machine."""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    project = make_project(tmp_path_factory.mktemp("words") / "project")
    settle()
    made = project("run", "tiny.yaml")
    assert made.code == 0, made.err
    shutil.copy(project.folder / "tiny.yaml", project.folder / "second.yaml")
    return project


@pytest.mark.parametrize("on", ["a pipe", "a terminal"])
@pytest.mark.parametrize("command", SAID)
def test_a_command_says(built, command, on, monkeypatch):
    monkeypatch.setenv(
        "ONNXBUILD_CACHE", str(built.folder / "cache")
    )  # its environments are shown
    code, said, on_terminal = SAID[command]
    words = shlex.split(command)
    if on == "a pipe":
        done = run_command_of(words, built.folder, os.environ, 120)
        found, printed = done.code, done.out + done.err
    else:
        terminal = Terminal(words, built.folder)
        try:
            found, printed = terminal.end(), terminal.final
        finally:
            terminal.close()
        said = on_terminal or said
    lines = [line for line in printed.splitlines(True) if not line.startswith(MEASURED)]
    assert (found, "".join(lines)) == (code, said)
