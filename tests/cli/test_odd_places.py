"""Pipes, devices and folders where files belong; projects and surroundings that few people have."""

import os
import shlex
import subprocess

import pytest

from tests.fork_servers import command

pytestmark = pytest.mark.slow

EXPORT = ("run", "tiny.yaml", "--only", "export")


def make_pipe(project, name: str) -> None:
    (project.folder / name).unlink(missing_ok=True)
    os.mkfifo(project.folder / name)


@pytest.mark.smoke
@pytest.mark.parametrize("verb", ["run", "lint"])
def test_a_pipe_or_a_device_is_no_recipe(project, verb):
    project.patience_s = 20
    make_pipe(project, "pipe.yaml")
    (project.folder / "zero.yaml").symlink_to("/dev/zero")
    for name in ("pipe.yaml", "zero.yaml"):
        done = project(verb, name)
        assert done.code == 2
        assert f"can't read recipe {name}: it is a pipe or a device; expected a file" in done.err


@pytest.mark.parametrize(
    ("name", "arguments", "code", "said"),
    [
        (
            "models/tiny.py",
            ("lint", "tiny.yaml"),
            2,
            "'models/tiny.py' can't be read: it is a pipe or a device; expected a file",
        ),
        ("tiny.lock", ("run", "tiny.yaml", "--locked"), 1, "it is a pipe or a device"),
        ("base.yaml", ("lint", "tiny.yaml"), 2, "which can't be read: it is a pipe or a device"),
    ],
)
def test_a_pipe_where_a_file_belongs_hangs_nothing(project, name, arguments, code, said):
    project.patience_s = 60
    make_pipe(project, name)
    if name == "base.yaml":
        project.edit("tiny.yaml", "version: 1\n", "version: 1\nextends: base.yaml\n")
    done = project(*arguments)
    assert done.code == code, done.out + done.err
    assert said in done.err


def test_a_project_may_be_called_anything_that_is_text(project):
    odd = project.folder.parent / "ein Prøjekt:\n'x' \"y\" $HOME \\"
    project.folder.rename(odd)
    project.folder = odd
    project.write("data/a\nb 'c'.bin", "x")
    project.edit("tiny.yaml", "models/tiny.py:load}", "models/tiny.py:load, files: [data/*]}")
    (odd / "linked").symlink_to("models")  # a folder of the import path holds links
    done = project(*EXPORT)
    assert done.code == 0, done.out + done.err
    assert project(*EXPORT).ran == []


LIMITS = "ulimit -n 32; umask 077; unset HOME; export TMPDIR=/nowhere; exec <&-"
LOCALE = "export TMPDIR=a/b HOME=/nowhere LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0"


@pytest.mark.parametrize("before", [LIMITS, LOCALE])
def test_a_model_is_built_in_surroundings_that_few_people_have(project, before):
    done = subprocess.run(
        ["bash", "-c", f"{before}; {shlex.join(command(*EXPORT))}"],
        cwd=project.folder,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
