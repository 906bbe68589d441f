"""Run the test that a Node package holds, as npm would."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.environment import Environment
from onnxbuild.onnxkit.bundles.manifest import SUMS_FILE
from onnxbuild.onnxkit.bundles.write import names_below
from onnxbuild.onnxkit.node.content import TEST_FILE

NOT_HERE = 3
"""The test's exit code where the model can't be loaded."""

_MODULES = "node_modules"


class PackageError(ValueError):
    """A package that is not what its SHA256SUMS says."""


@dataclass(frozen=True, slots=True)
class OwnTest:
    """What became of it.

    Attributes:
        code: Exit code.
        said: The last line that it printed.
        outputs: Folder of what its model gives; may be missing.
    """

    code: int
    said: str
    outputs: Path


def run_own_test(package: Path, environment: Environment, scratch: Path) -> OwnTest:
    """Install a package next to what it depends on, file by file against SHA256SUMS, and run `node test.js --outputs FOLDER`.

    Args:
        package: Its folder.
        environment: Where Node and onnxruntime-node are.
        scratch: A folder to write to.

    Raises:
        PackageError: The package is damaged.
    """
    folder, outputs = scratch / "package", scratch / "outputs"
    _copy(package, folder)
    (folder / _MODULES).symlink_to(Path(environment.folder, _MODULES))
    done = subprocess.run(
        [environment.interpreter, TEST_FILE, "--outputs", outputs],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        check=False,
    )
    printed = done.stderr.strip() or done.stdout.strip() or "it prints nothing"
    return OwnTest(done.returncode, printed.splitlines()[-1], outputs)


def _copy(package: Path, folder: Path) -> None:
    """Copy the files of a package: Node and ONNX Runtime look for others next to where links lead."""
    sums = (
        (package / SUMS_FILE).read_text(encoding="utf-8")
        if (package / SUMS_FILE).is_file()
        else ""
    )
    listed = {
        name: digest for digest, _, name in (line.partition("  ") for line in sums.splitlines())
    }
    there = set(names_below(package)) - {SUMS_FILE}
    if there != set(listed):
        odd = min(there ^ set(listed))
        what = "is not there" if odd in listed else f"is not listed in {SUMS_FILE}"
        raise PackageError(f"the package is damaged: {odd} {what}")
    for name, digest in listed.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(package / name, folder / name)
        with (folder / name).open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise PackageError(f"the package is damaged: {name} is not as {SUMS_FILE} says")
