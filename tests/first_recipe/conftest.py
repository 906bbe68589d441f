"""Folders to start in, and the command in the test's process; what it runs of the user's is a real child."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from onnxbuild.cli.main import run_command


@dataclass(frozen=True)
class Said:
    """What a command said."""

    code: int
    out: str
    err: str


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty project, to work in."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / ".git").mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def onnxbuild(capsys):
    """Runs the command."""

    def run(*arguments):
        code = run_command([str(each) for each in arguments])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


def files_in(folder: Path) -> set[str]:
    """All files and folders below a folder."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if "__pycache__" not in path.parts
    }
