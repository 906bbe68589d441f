"""Run the test that a web package holds: model.js in Node, on the WebAssembly that browsers run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

NOT_HERE = 3
"""The test's exit code where the model can't be loaded."""


_AS_LINKED = ("--preserve-symlinks", "--preserve-symlinks-main")
"""A step's inputs are links into the store, where modules have other names."""


@dataclass(frozen=True, slots=True)
class NodeTest:
    """The result.

    Attributes:
        code: Exit code; negative for the signal that ended it.
        said: The last line that it printed.
        outputs: Folder of what its model gives, as `read_plain_outputs` reads it.
    """

    code: int
    said: str
    outputs: Path


def run_node_test(package: Path, node: str, scratch: Path) -> NodeTest:
    """Run `node test.mjs --outputs FOLDER`.

    Args:
        package: The folder.
        node: The program.
        scratch: A folder to write to.
    """
    outputs = scratch / "outputs"
    outputs.mkdir()
    code, printed = run_node(node, [str(package / "test.mjs"), "--outputs", str(outputs)], scratch)
    lines = printed.strip().splitlines() or ["it prints nothing"]
    return NodeTest(code, lines[-1], outputs)


def run_node(node: str, arguments: list[str], folder: Path) -> tuple[int, str]:
    """Return (exit code, what it printed) of a program of Node.

    Args:
        node: The program.
        arguments: A script, and its arguments.
        folder: To run in.
    """
    import subprocess

    done = subprocess.run(
        [node, *_AS_LINKED, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    return done.returncode, done.stderr.strip() or done.stdout
