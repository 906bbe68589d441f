"""Node and npm's packages as they are here, for a process that makes none and keeps no digests."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.environments import Environments
from onnxbuild.core.environment import BUILT_IN, Environment, Interpreter
from onnxbuild.core.places import real_path
from onnxbuild.own_folder import OWN_FOLDER


def look_here(environment: Environment) -> Interpreter:
    """Return where Node is, and the packages of a list of this program: empty paths for what is not there.

    Args:
        environment: Of npm.
    """
    stats = StatCache(Index(Path(":memory:")))
    here = Environments(stats, lambda path: real_path(path, {BUILT_IN: OWN_FOLDER}))
    return here.look(environment, "")
