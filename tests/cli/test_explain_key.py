"""`explain` of a key at the command line, and of a recipe as before."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from tests.explanation.test_key_page import GOAL


def test_a_key_is_explained_without_a_terminal_and_a_recipe_as_before(cheap):
    assert cheap("explain", "goal", env={"COLUMNS": ""}).out == GOAL
    assert cheap("explain", "tiny.yaml").out.startswith("# tiny: tiny.yaml in full")


def test_a_key_is_explained_on_a_terminal_of_80_columns(cheap):
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm"}
    environment.pop("COLUMNS", None)
    subprocess.run(
        [sys.executable, "-c", "import termios; termios.tcsetwinsize(0, (24, 80))"],
        stdin=follower,
        check=True,
    )
    done = subprocess.run(
        [sys.executable, "-m", "onnxbuild", "explain", "goal"],
        stdout=follower,
        cwd=cheap.folder,
        env=environment,
        check=False,
    )
    os.close(follower)
    assert done.returncode == 0
    assert os.read(leader, 1 << 16).decode().replace("\r\n", "\n") == GOAL
    os.close(leader)


def test_an_unknown_key_names_the_three_nearest(cheap):
    seen = cheap("explain", "gaol")
    assert (seen.code, seen.err) == (
        2,
        (
            "error: no recipe has a key 'gaol'; the nearest are goal, atol and acl\n"
            "  fix: onnxbuild explain goal; all keys: docs/recipe.md\n"
        ),
    )


def test_a_recipe_that_is_not_there_is_still_a_missing_file(cheap):
    assert "there is no recipe gone.yaml" in cheap("explain", "gone.yaml").err
