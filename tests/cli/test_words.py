"""What a person reads, word by word: through a pipe, and on a terminal of 80 columns."""

from __future__ import annotations

import shlex
import shutil

import pytest

from onnxbuild.adapters.clock import settle
from tests.cli.conftest import Project, make_project
from tests.terminal import Terminal

pytestmark = pytest.mark.slow

SAID = {
    "run tiny.yaml --only fp3": (
        2,
        (
            "error: --only fp3 is no variant or step of these recipes; the nearest of 9 are fp32, fp32/check and fp32/package\n"
            "  fix: write one of them; to see all: onnxbuild graph tiny.yaml\n"
        ),
    ),
    "run x.onnx": (
        2,
        (
            "error: x.onnx is a model or other data, not a recipe\n"
            "  fix: write a first recipe for it: onnxbuild init x.onnx\n"
        ),
    ),
    "run second.yaml": (
        2,
        (
            "error: second.yaml:1:1: two recipes are named 'tiny': tiny.yaml and second.yaml; artifacts/out/tiny is of the first\n"
            "  fix: write another `name:` in one of them, such as `name: second`\n"
        ),
    ),
    "lint bad.yaml": (
        2,
        (
            "error: models/bad.py:1:10: invalid syntax\n"
            "    def load(:\n"
            "             ^\n"
            "  fix: mend line 1 of models/bad.py\n"
        ),
    ),
    "run tiny.yaml --force check": (0, "note    tiny:check gave the same bytes again\n"),
    "cache gc --dry-run": (0, "would remove 0 results, 0 blobs and 0 runs: 0 B\n"),
    "clean --dry-run": (0, "nothing is left over\n"),
    "schema --write new/schema.json": (0, "wrote new/schema.json\n"),
    "explain opsett": (
        2,
        (
            "error: no recipe has a key 'opsett'; the nearest are opset, most and operators\n"
            "  fix: onnxbuild explain opset; all keys: docs/recipe.md\n"
        ),
    ),
    "run tiny.yaml": (
        0,
        "in artifacts/out/RECIPE/VARIANT/\nup to date: 8 steps, nothing to do\n",
    ),
}
"""Command -> exit code, and the lines that it prints, in this order; of `run`, among others."""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    project = make_project(tmp_path_factory.mktemp("words") / "project")
    settle()
    made = project("run", "tiny.yaml")
    assert made.code == 0, made.err
    text = (project.folder / "tiny.yaml").read_text()
    shutil.copy(project.folder / "artifacts/out/tiny/fp32/model.onnx", project.folder / "x.onnx")
    project.write("second.yaml", text)
    project.write("models/bad.py", "def load(:\n    pass\n")
    bad = text.replace("name: tiny", "name: bad").replace("models/tiny.py", "models/bad.py")
    project.write("bad.yaml", bad)
    return project


@pytest.mark.parametrize("on", ["a pipe", "a terminal"])
@pytest.mark.parametrize("command", SAID)
def test_a_command_says(built, command, on):
    code, said = SAID[command]
    if on == "a pipe":
        done = built(*shlex.split(command))
        found, printed = done.code, done.out + done.err
    else:
        terminal = Terminal(shlex.split(command), built.folder)
        try:
            found = terminal.end()
            printed = terminal.all.replace("\r", "")
        finally:
            terminal.close()
    assert (found, said in f"{printed}\n") == (code, True), printed
