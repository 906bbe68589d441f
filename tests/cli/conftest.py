"""Projects to run the command line on."""

import contextlib
import io
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from unittest import mock

import pytest

from onnxbuild.adapters.clock import settle
from onnxbuild.cli.main import run_command
from tests.fakes.cheap_kinds import KINDS
from tests.warm_commands import run as run_command_of

MODEL = '''\
import torch


def load(width=8):
    """A small network."""
    torch.manual_seed(0)
    from helper import activation

    return torch.nn.Sequential(
        torch.nn.Linear(4, width), activation(), torch.nn.Linear(width, 2)
    )
'''
HELPER = """\
import torch


def activation():
    return torch.nn.ReLU()
"""
RECIPE = """\
version: 1
name: tiny
model: {entrypoint: models/tiny.py:load}
dummy_inputs:
  input: {dtype: float32, shape: [batch, 4]}
outputs: [logits]
dynamic_axes:
  batch: {min: 1, max: 8, example: 2}
quantization: {fp32: none}
benchmark: {max_time_s: 0.1, min_samples: 3}
"""
QUICK = "export: {exporter: torchscript}\n"  # a tenth of a second, where dynamo loads for three


CHEAP_MODEL = '''\
def load(width=8):
    """A small network, as text: see tests/fakes/cheap_kinds.py."""
    from helper import activation

    return f"Linear 4x{width}, {activation()}, Linear {width}x2"
'''
CHEAP_HELPER = """\
def activation():
    return "ReLU"
"""


def with_starts(arguments: tuple[str, ...]) -> tuple[str, ...]:
    """Have `run` print which steps start, for `Result.ran`."""
    plain = {"-v", "--verbose", "--json", "--quiet", "--help"}.isdisjoint(arguments)
    return (
        ("run", "--verbose", *arguments[1:]) if arguments[:1] == ("run",) and plain else arguments
    )


def heed_signals() -> None:
    """For a child: what nohup, or a shell's `&`, has the suite ignore is not ignored there."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


P = TypeVar("P", bound="Project")


@dataclass
class Result:
    """What a person saw."""

    code: int
    out: str
    err: str

    @property
    def ran(self) -> list[str]:
        """Steps that ran, without the recipe's name."""
        starts = ("run     ", "done    ")  # the latter of verbs that have no --verbose
        lines = [line.split() for line in self.out.splitlines() if line.startswith(starts)]
        return sorted({words[1].partition(":")[2] for words in lines})


@dataclass
class Project:
    """A project in a folder of its own, driven by the real command.

    Attributes:
        folder: Where it is.
        patience_s: How long a command may take.
    """

    folder: Path
    patience_s: float = 120

    @property
    def cache(self) -> dict[str, str]:
        """Where environments are kept: `cache gc` shall remove none of the person's who runs the tests."""
        if "ONNXBUILD_CACHE" in os.environ:
            return {}
        return {"ONNXBUILD_CACHE": str(self.folder.with_name(f"{self.folder.name}-cache"))}

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def edit(self, name: str, old: str, new: str) -> None:
        path = self.folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def __call__(self, *arguments: str, env: dict[str, str] | None = None) -> Result:
        arguments = with_starts(arguments)
        surroundings = {**os.environ, **self.cache, **(env or {})}
        done = run_command_of(arguments, self.folder, surroundings, self.patience_s)
        assert "Traceback" not in done.out + done.err, done.out + done.err
        return Result(done.code, done.out, done.err)

    def run(self, *arguments: str, env: dict[str, str] | None = None) -> Result:
        return self("run", "tiny.yaml", *arguments, env=env)


def make_project(folder: Path) -> Project:
    """A recipe, its model and a helper, in a folder that is made."""
    return _written(Project(folder), MODEL, HELPER)


def _written(made: P, model: str, helper: str) -> P:
    made.write("pyproject.toml", "")
    made.write("tiny.yaml", RECIPE + QUICK)
    made.write("models/tiny.py", model)
    made.write("models/helper.py", helper)
    return made


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """As a person finds it: saved a moment ago, not in the clock tick in which the command begins."""
    made = make_project(tmp_path / "project")
    settle()
    return made


@dataclass
class CheapProject(Project):
    """A project that the command is run on in this process, with kinds that cost next to nothing."""

    def __call__(self, *arguments: str, env: dict[str, str] | None = None) -> Result:
        arguments = with_starts(arguments)
        out, err = io.StringIO(), io.StringIO()
        with (
            contextlib.chdir(self.folder),
            mock.patch.dict(os.environ, self.cache | (env or {})),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
        ):
            code = run_command(arguments, KINDS)
        assert "Traceback" not in out.getvalue() + err.getvalue(), out.getvalue() + err.getvalue()
        return Result(code, out.getvalue(), err.getvalue())


def make_cheap_project(folder: Path) -> CheapProject:
    """The same of cheap kinds."""
    return _written(CheapProject(folder), CHEAP_MODEL, CHEAP_HELPER)


@pytest.fixture
def cheap(tmp_path: Path) -> CheapProject:
    """A project of cheap kinds, in this process: for tests of verbs, not of models."""
    return make_cheap_project(tmp_path / "project")


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """Mounts a small filesystem at a folder of the project, where that is allowed."""
    mounted: list[Path] = []

    def mount(size: str, *options: str) -> Path:
        folder = tmp_path / "project" / f"disk{len(mounted)}"
        folder.mkdir(parents=True)
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", ",".join((f"size={size}", *options)), "none", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"a filesystem can't be mounted here: {done.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)
