"""The console blocks of the documents: their commands, run as a reader does, and what they print next to what a page shows."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
_PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
_FENCE = re.compile(r"^([ \t]*)```(\S*)[^\n]*\n(.*?)^\1```[ \t]*$", re.DOTALL | re.MULTILINE)
_COMMAND = re.compile(r"^\s*(?:\$ |(?:- )?run: )?(?:python -m )?onnxbuild [a-z].*", re.MULTILINE)
_EXIT_CODE = re.compile(r"# exit code (\d+)\b")
_IMPORT = re.compile(r"^import onnxbuild\b", re.MULTILINE)


def commands(page: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (command, lines shown) for each `$ ` line of a page's console blocks."""
    for block in _BLOCK.findall((ROOT / page).read_text()):
        for part in block.split("$ ")[1:]:
            command, _, shown = part.partition("\n")
            yield command, [line for line in shown.splitlines() if line.strip()]


def exit_code(command: str) -> int:
    """The code that a page says a command ends with, as `# exit code 3` after it; 0 where it says none."""
    found = _EXIT_CODE.search(command)
    return int(found[1]) if found else 0


def programs(page: str) -> list[str]:
    """The Python blocks of a page that use onnxbuild."""
    text = (ROOT / page).read_text()
    return [block for block in _PYTHON.findall(text) if _IMPORT.search(block)]


def commands_elsewhere(text: str) -> list[str]:
    """The command lines of onnxbuild in blocks of a page that are no console blocks."""
    return [
        line.strip()
        for _, language, block in _FENCE.findall(text)
        if language != "console"
        for line in _COMMAND.findall(block)
    ]


def environment(**more: str) -> dict[str, str]:
    """The environment of a reader: onnxbuild is on the path, commits have an author, the store is the project's."""
    own = {key: value for key, value in os.environ.items() if key != "ONNXBUILD_STORE"}
    tools = f"{Path(sys.executable).parent}{os.pathsep}{own['PATH']}"
    who = {
        f"GIT_{who}_{what}": "a@example.org"
        for who in ("AUTHOR", "COMMITTER")
        for what in ("NAME", "EMAIL")
    }
    return {**own, **who, "PATH": tools, **more}


def said(command: str, folder: Path, environ: Mapping[str, str]) -> tuple[int, str]:
    """(exit code, what a command prints on both streams, without the path to the folder)."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1800,
        check=False,
    )
    return done.returncode, done.stdout.replace(f"{folder}/", "")


def assert_shown(command: str, shown: list[str], printed: str) -> None:
    """Hold every line that a page shows, numbers aside, against what the command printed; `...` stands for others."""
    lines = {masked(line) for line in printed.splitlines()}
    for line in shown:
        if line.strip() != "...":
            assert masked(line) in lines, f"$ {command}\nshows: {line}\nbut said:\n{printed}"


def masked(line: str) -> str:
    """A line without its numbers, digests and blanks."""
    line = re.sub(r"\b([0-9a-f]{64}|[0-9a-f]{12})\b", "#", line)
    line = line.replace(" ?", "")  # measured on a machine that does other work, too
    line = re.sub(r"[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?", "#", line)
    line = line.replace("# to # x", "# x")  # a wide interval stands in the ratio's place
    line = re.sub(r"(# ms\s+)# x", r"\1-", line)  # or nothing, on a busy machine
    return re.sub(r"\s+", " ", line).strip()
