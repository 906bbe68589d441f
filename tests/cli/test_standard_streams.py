"""Output that nobody reads, that is full or closed, or of another encoding; a working folder that was removed."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Project, make_project
from tests.fork_servers import command
from tests.warm_commands import run_unread

pytestmark = pytest.mark.slow

ARGUMENTS = {
    "run": ("run", "tiny.yaml", "--set", "opset=17"),
    "why": ("why", "tiny:export"),
    "verify": ("verify", "dist/tiny-1"),
    "schema": ("schema",),
    "doctor": ("doctor",),
    "cache": ("cache", "stats"),
}
"""What makes verbs print: with click, at a glance, from a child, and what is large."""


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Project:
    project = make_project(tmp_path_factory.mktemp("streams") / "project")
    project.edit(
        "models/tiny.py", "torch.manual_seed(0)\n", "torch.manual_seed(print('x') or 0)\n"
    )
    for arguments in (
        "lock tiny.yaml",
        "release tiny.yaml --version 1 --allow-dirty",
        "push dist/tiny-1 oci:released:1",
    ):
        made = project(*arguments.split())
        assert made.code == 0, made.err
    return project


def run(
    folder: Path, *arguments: str, closed: tuple[str, ...]
) -> subprocess.CompletedProcess[str]:
    """Run a command whose outputs that `closed` names go to a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    outputs = {
        name: writer if name in closed else subprocess.PIPE for name in ("stdout", "stderr")
    }
    try:
        return subprocess.run(
            command(*arguments), cwd=folder, text=True, timeout=300, check=False, **outputs
        )
    finally:
        os.close(writer)


@pytest.mark.parametrize("verb", ARGUMENTS)
def test_a_closed_pipe_ends_a_verb_as_sigpipe_would(built, verb):
    done = run_unread(ARGUMENTS[verb], built.folder, timeout_s=60)
    assert (done.code, done.err) == (141, "")


@pytest.mark.parametrize("arguments", ["--help", "run tiny.yaml --json"])
def test_a_closed_pipe_ends_whatever_prints(built, arguments):
    done = run(built.folder, *arguments.split(), closed=("stdout",))
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("arguments", ["run none.yaml", "run --frob"])
@pytest.mark.parametrize("closed", [("stderr",), ("stdout", "stderr")])
def test_an_error_that_nobody_reads_ends_as_sigpipe_would(built, arguments, closed):
    assert run(built.folder, *arguments.split(), closed=closed).returncode == 141


def test_a_build_after_one_whose_output_was_closed_goes_on(built):
    setting = ("run", "tiny.yaml", "--only", "export", "--set", "opset=16")
    assert run(built.folder, *setting, closed=("stdout",)).returncode == 141
    again = built(*setting)
    assert again.code == 0, again.out + again.err


def shell(
    folder: Path, line: str, *arguments: str, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run a command in a shell's line, in which it is "$@"."""
    return subprocess.run(
        ["bash", "-c", line, "bash", *command(*arguments)],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
        env={**os.environ, **env},
    )


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ('"$@" >/dev/full', 1, "no space left on the disk while writing the output"),
        ('"$@" none.yaml 2>/dev/full', 2, ""),
        ('"$@" <&- >&- 2>&-', 0, ""),
    ],
)
def test_outputs_that_are_full_or_closed_change_no_other_exit_code(built, line, code, said):
    done = shell(built.folder, line, "plan", "tiny.yaml")
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("verb", ["run", "verify"])
def test_a_working_folder_that_was_removed_is_said_to_be(built, tmp_path, verb):
    (tmp_path / "gone").mkdir()
    line = f'cd {tmp_path}/gone && rmdir {tmp_path}/gone && "$@"'
    done = shell(tmp_path, line, *ARGUMENTS[verb])
    assert done.returncode == 2
    assert done.stderr.splitlines()[-2:] == [
        "error: the folder that this was started in does not exist any more",
        '  fix: go to one that does; if it was made anew: `cd "$PWD"`',
    ]


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", r"ä\xff"), ("iso-8859-5", r"\xe4\xff")])
def test_names_are_shown_whatever_the_output_can_encode(built, encoding, shown):
    name = os.fsdecode("ä".encode() + b"\xff.yaml")
    done = shell(built.folder, '"$@" 2>&1', "run", name, PYTHONIOENCODING=encoding)
    assert done.returncode == 2
    assert f"there is no recipe {shown}.yaml" in done.stdout
