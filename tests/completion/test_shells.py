"""The scripts in real shells: bash as it is called and at a terminal, zsh at a terminal, fish by its own question."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from onnxbuild.completion.command import SHELLS, script_of
from tests.completion.test_candidates import RECIPE

PROGRAMS = str(Path(sys.executable).parent)
_WAIT_S = 120.0


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("a project")
    (root / "recipes/models").mkdir(parents=True)
    (root / "recipes/tiny.yaml").write_text(RECIPE)
    (root / "recipes/my own.yaml").write_text(RECIPE.replace("tiny", "own"))
    (root / "recipes/models/tiny.py").write_text("def load():\n    return None\n")
    return root


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
    return {
        **os.environ, "PATH": path, "ONNXBUILD_CACHE": str(cache), "TERM": "dumb", "PS1": "> ", "HISTFILE": "",
    }  # fmt: skip


def needs(shell):
    return pytest.mark.skipif(shutil.which(shell) is None, reason=f"{shell} is not installed")


@pytest.mark.parametrize("shell", [pytest.param(name, marks=needs(name)) for name in SHELLS])
def test_the_shell_takes_its_script_for_well_formed(shell, tmp_path):
    script = tmp_path / "script"
    script.write_text(script_of(shell))
    subprocess.run([shell, "-n", str(script)], check=True)


def completed_by_bash(line, project, environment, words=None):
    """COMPREPLY for a line with the cursor at its end."""
    program = (
        'eval "$(onnxbuild completion bash)"; COMP_LINE=$1; COMP_POINT=${#1}; shift; COMP_WORDS=("$@"); '
        'COMP_CWORD=$(($# - 1)); _onnxbuild; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", program, "bash", line, *(words or line.split(" "))],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split("\n")[:-1]


@pytest.mark.slow
def test_bash_gets_what_follows_the_cursor(project, environment):
    assert completed_by_bash("onnxbuild gra", project, environment) == ["graph"]
    assert completed_by_bash("onnxbuild run recipes/t", project, environment) == [
        "recipes/tiny.yaml"
    ]
    assert completed_by_bash("onnxbuild run recipes/m", project, environment) == [
        "recipes/my\\ own.yaml", "recipes/models/",
    ]  # fmt: skip


@pytest.mark.slow
def test_bash_replaces_only_what_follows_a_colon_or_an_equals_sign(project, environment):
    words = ["onnxbuild", "why", "tiny", ":", "int8/q"]
    assert completed_by_bash("onnxbuild why tiny:int8/q", project, environment, words) == [
        "int8/quantize"
    ]
    words = ["onnxbuild", "graph", "--format", "=", "d"]
    assert completed_by_bash("onnxbuild graph --format=d", project, environment, words) == ["dot"]


def typed_at(command, lines, project, environment):
    """Type lines at a shell's terminal, each after the prompt of the one before; return what it wrote."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(project)
        os.execvpe(command[0], command, environment)
    written = b""
    try:
        for text, until in lines:
            os.write(terminal, text.encode())
            ends, begun = time.monotonic() + _WAIT_S, len(written)
            while not re.search(until.encode(), written[begun:]):
                assert time.monotonic() < ends, f"{text!r} led to {written[begun:]!r}"
                if select.select([terminal], [], [], 0.2)[0]:
                    written += os.read(terminal, 65536)
    finally:
        os.close(terminal)
        os.kill(process, 9)
        os.waitpid(process, 0)
    return written.decode(errors="replace")


@pytest.mark.slow
def test_a_tab_at_a_bash_prompt(project, environment):
    typed_at(
        ["bash", "--norc", "--noprofile", "-i"],
        [
            ('eval "$(onnxbuild completion bash)"; echo rea""dy\n', "ready"),
            ("onnxbuild gra\trecipes/t\t", r"graph recipes/tiny\.yaml "),
            ("\x15onnxbuild why ti\tint8/q\t", r"why tiny:int8/quantize "),
        ],
        project,
        environment,
    )


@needs("zsh")
@pytest.mark.slow
def test_a_tab_at_a_zsh_prompt(project, environment):
    typed_at(
        ["zsh", "-f", "-i"],
        [
            ("autoload -Uz compinit; compinit -D -u\n", "> "),
            ('eval "$(onnxbuild completion zsh)"; echo rea""dy\n', "ready"),
            ("onnxbuild gra\trecipes/t\t", r"graph.*recipes/tiny\.yaml"),
            ("\x15onnxbuild why ti\tint8/q\t", r"why.*tiny:.*int8/quantize"),
        ],
        project,
        environment,
    )


@needs("fish")
@pytest.mark.slow
def test_fish_asks_for_candidates(project, environment):
    def completed_by_fish(line):
        done = subprocess.run(
            [
                "fish",
                "--no-config",
                "-c",
                "onnxbuild completion fish | source; complete -C $argv[1]",
                line,
            ],
            cwd=project,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return [each.partition("\t")[0] for each in done.stdout.splitlines()]

    assert completed_by_fish("onnxbuild gra") == ["graph"]
    assert completed_by_fish("onnxbuild why tiny:int8/q") == ["tiny:int8/quantize"]
    assert completed_by_fish("onnxbuild run recipes/t") == ["recipes/tiny.yaml"]
