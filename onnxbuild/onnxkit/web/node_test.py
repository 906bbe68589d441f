"""Run the test that a web package holds: model.js in Node, on the WebAssembly that browsers run."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.onnxkit.host.progress import phase
from onnxbuild.onnxkit.packages.golden import INDEX_FILE, read_plain_outputs
from onnxbuild.onnxkit.packages.own_test import OwnTest

TEST_FILE = "test.mjs"

_AS_LINKED = ("--preserve-symlinks", "--preserve-symlinks-main")
"""A step's inputs are links into the store, where modules have other names."""


def run_node_test(package: Path, node: str, scratch: Path) -> OwnTest:
    """Run `node test.mjs --outputs FOLDER`.

    Args:
        package: The folder.
        node: The program.
        scratch: A folder to write to.
    """
    phase("running the package's own test")
    outputs = scratch / "outputs"
    outputs.mkdir()
    code, printed = run_node(node, [str(package / TEST_FILE), "--outputs", str(outputs)], scratch)
    said = (printed.strip().splitlines() or ["it prints nothing"])[-1]
    is_written = (outputs / INDEX_FILE).exists()
    return OwnTest(code, said, read_plain_outputs(outputs) if is_written else {})


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
