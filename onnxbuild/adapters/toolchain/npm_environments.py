"""Folders with node_modules made from lists: made once, whole or not at all."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.environments import Environments
from onnxbuild.adapters.toolchain.npm import (
    NODE_MODULES,
    manifest_of,
    packages_listed,
    program,
    this_platform,
)
from onnxbuild.adapters.toolchain.virtual_environments import make_once
from onnxbuild.core.environment import BUILT_IN, NPM, Environment, Interpreter
from onnxbuild.core.errors import StepError
from onnxbuild.core.places import real_path
from onnxbuild.own_folder import OWN_FOLDER

_PREBUILT = "*/bin/napi-v*"
"""Below node_modules: folders SYSTEM/ARCHITECTURE of what packages have built for each."""

_OPTIONS = (
    "--ignore-scripts", "--no-bin-links", "--no-audit", "--no-fund", "--no-update-notifier", "--no-progress", "--json", "--prefer-offline",
    "--loglevel=error", "--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=2000",
)  # fmt: skip


def make_npm_environment(listed: str, node_modules: str, say: Callable[[str], None]) -> None:
    """Make the folder of a list, with npm, unless another process has just done so.

    Scripts of packages don't run, and what they have built for other platforms is left out.

    Args:
        listed: The absolute path of package-lock.json.
        node_modules: Where its packages will be, absolute.
        say: Receives a line at each step.

    Raises:
        StepError: It can't be made; nothing is left of it.
    """

    def fill(folder: str) -> None:
        npm = program(NPM)
        if npm is None:
            raise StepError(
                f"there is no npm to install {listed} with",
                where=listed,
                fix="install Node with npm (`apt-get install nodejs npm`), and run again",
            )
        text = Path(listed).read_text(encoding="utf-8")
        say(f"making the environment of {listed}: {len(packages_listed(text))} packages, with npm")
        os.mkdir(folder)
        Path(folder, "package.json").write_text(manifest_of(text), encoding="utf-8")
        Path(folder, "package-lock.json").write_text(text, encoding="utf-8")
        _install(npm, folder, listed)
        _prune(Path(folder, NODE_MODULES))

    make_once(listed, node_modules, fill, say, final=os.path.dirname(node_modules))


def _install(npm: str, folder: str, listed: str) -> None:
    path = os.pathsep.join((os.path.dirname(npm), os.environ.get("PATH", os.defpath)))
    done = subprocess.run(
        [npm, "ci", *_OPTIONS],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        stdin=subprocess.DEVNULL,
        env={**os.environ, "PATH": path},
        check=False,
    )
    if done.returncode == 0 and os.path.isdir(os.path.join(folder, NODE_MODULES)):
        return
    raise StepError(
        f"npm can't install {listed}: {_said(done)}",
        where=listed,
        fix="see that npm's registry can be reached (`npm ping`), and run again",
    )


def _said(done: subprocess.CompletedProcess[str]) -> str:
    """The error of `npm --json`; the last line that it printed if there is none."""
    try:
        return str(json.loads(done.stdout)["error"]["summary"]).splitlines()[0]
    except (ValueError, KeyError, TypeError, IndexError):
        lines = (done.stderr.strip() or done.stdout.strip() or "it says nothing").splitlines()
        return lines[-1]


def _prune(node_modules: Path) -> None:
    """Remove what packages have built for other systems and architectures."""
    system, architecture = this_platform()
    for prebuilt in node_modules.glob(_PREBUILT):
        for folder in (*prebuilt.iterdir(), *(prebuilt / system).glob("*")):
            if folder.name not in {system, architecture}:
                shutil.rmtree(folder)


def look_here(environment: Environment) -> Interpreter:
    """Return where Node is, and the packages of a list of this program: empty paths for what is not there."""
    stats = StatCache(Index(Path(":memory:")))
    here = Environments(stats, lambda path: real_path(path, {BUILT_IN: OWN_FOLDER}))
    return here.look(environment, "")
