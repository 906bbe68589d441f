"""docs/first-model.md, followed as a reader does: its files are written, its commands run and print what it shows."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_readme import ROOT, _commands, _masked

PAGE = "docs/first-model.md"
COMMANDS = 12
_FILE = re.compile(r"Save this as `([^`]+)`:\n\n```python\n(.*?)```", re.DOTALL)


@pytest.mark.slow
def test_a_reader_comes_from_a_model_to_a_release(tmp_path):
    text = (ROOT / PAGE).read_text()
    ((name, content),) = _FILE.findall(text)
    tools = str(Path(sys.executable).parent)
    environment = {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        **{
            f"GIT_{who}_{what}": "a@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
    }
    environment.pop("ONNXBUILD_STORE", None)
    commands = list(_commands(PAGE))
    assert len(commands) == COMMANDS
    folder = tmp_path
    for command, shown in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}"
        folder = tmp_path / "first"
        if (folder / "models").is_dir() and not (folder / name).exists():
            (folder / name).write_text(content)
        said = {_masked(line) for line in done.stdout.splitlines()}
        for line in shown:
            assert line == "..." or _masked(line) in said, (
                f"$ {command}\nshows: {line}\n{done.stdout}"
            )
    recipe = (folder / "recipes/reviews.yaml").read_text()
    (yaml,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert yaml in recipe
