"""The environments of targets: where each one's interpreter is, and what its ONNX Runtime is."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

from onnxbuild.adapters import machine
from onnxbuild.adapters.disk.statcache import ABSENT, StatCache
from onnxbuild.adapters.locate import cache_root
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.interpreters import look_at
from onnxbuild.core.environment import INTERPRETER, RUNTIME, Environment, Interpreter
from onnxbuild.core.errors import StepError
from onnxbuild.providers import all_providers

MADE = "environments"
"""Below the cache folder: a virtual environment for each list."""

_NOT_MADE = "not made yet"


class Environments:
    """Environments as they are now; each is looked at once, until `forget`.

    Args:
        stats: Digests of files.
        absolute: Where a recorded path is on this machine.
    """

    def __init__(self, stats: StatCache, absolute: Callable[[str], str]) -> None:
        self._stats = stats
        self._absolute = absolute
        self._found: dict[Environment, Interpreter] = {}

    def forget(self) -> None:
        """Look at all of them again."""
        self._found = {}

    def requirements(self, environment: Environment) -> str:
        """The absolute path of its list."""
        return self._absolute(environment.requirements)

    def interpreter(self, environment: Environment) -> str:
        """The absolute path of its interpreter, whether it is there or not."""
        if environment.python:
            return self._absolute(environment.python)
        return os.path.join(self.folder(environment), "bin", "python")

    def folder(self, environment: Environment) -> str:
        """Return where that of a list is, whether it is there or not."""
        digest = self._stats.digest(self.requirements(environment)) or ""
        name = hashlib.sha256(f"{digest} {machine.python_build()}".encode()).hexdigest()
        return os.path.join(cache_root(), MADE, name)

    def is_missing(self, environment: Environment) -> bool:
        """Return whether it has to be made first."""
        if environment.python:
            return False
        self._found.pop(environment, None)
        return self._stats.look(self.interpreter(environment)) == ABSENT

    def look(self, environment: Environment, where: str) -> Interpreter:
        """Return what it is now; see core.ports.Fingerprints."""
        if environment not in self._found:
            self._found[environment] = self._look(environment, where)
        return self._found[environment]

    def _look(self, environment: Environment, where: str) -> Interpreter:
        path = self.interpreter(environment)
        if self.is_missing(environment):
            return Interpreter(path, (), {environment.package(RUNTIME): _NOT_MADE}, RUNTIME)
        python = look_at(path, self._stats, where)
        installed = Distributions(self._stats, python.sites)
        runtimes = installed.stands_for(RUNTIME)
        if not runtimes:
            raise StepError(
                f"the interpreter {path} has no ONNX Runtime",
                where=where,
                fix=f"`{path} -m pip install onnxruntime-openvino`, or the package that the target "
                "needs"
                if environment.python
                else f"add `onnxruntime-openvino==VERSION`, or what the target needs, to "
                f"{environment.requirements}",
            )
        packages = {environment.package(INTERPRETER): python.build}
        for name in _loaded(installed, runtimes):
            packages[environment.package(name)] = installed.digest(name) or ""
        return Interpreter(path, (*python.prefixes, *python.sites), packages, RUNTIME)


def _loaded(installed: Distributions, runtimes: tuple[str, ...]) -> list[str]:
    """ONNX Runtime and what it needs, as far as that is installed."""
    there = frozenset(installed.names())
    found: dict[str, None] = {}
    loaded = tuple(prefix for each in all_providers() for prefix in each.library_distributions)
    left = [*runtimes, *sorted(name for name in there if name.startswith(loaded))]
    while left:
        name = left.pop(0)
        if name in there and name not in found:
            found[name] = None
            left += installed.needs(name)
    return sorted(found)
