"""Environments: of targets, of models' frameworks, of npm's packages: where each is, and what is installed there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable

from onnxbuild.adapters import machine
from onnxbuild.adapters.disk.statcache import ABSENT, StatCache
from onnxbuild.adapters.locate import cache_root
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.interpreters import Python, look_at
from onnxbuild.adapters.toolchain.node_program import find_node, node_build, node_folders
from onnxbuild.adapters.toolchain.npm_lists import NODE_MODULES, packages_listed, this_platform
from onnxbuild.core.action import NOT_INSTALLED
from onnxbuild.core.environment import INTERPRETER, NODE, NPM, RUNTIME, Environment, Interpreter
from onnxbuild.core.errors import StepError
from onnxbuild.providers import all_providers

MADE = "environments"
"""Below the cache folder: a virtual environment for each list."""

_NOT_MADE = "not made yet"
SEEDS = frozenset({"pip", "setuptools", "wheel"})
"""Packages that a new environment has from the start; no step uses them."""


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
        self._looked: dict[str, tuple[Python, Distributions]] = {}

    def forget(self) -> None:
        """Look at all of them again."""
        self._found, self._looked = {}, {}

    def requirements(self, environment: Environment) -> str:
        """The absolute path of its list."""
        return self._absolute(environment.requirements or environment.npm)

    def interpreter(self, environment: Environment) -> str:
        """The absolute path of its interpreter, whether it is there or not; of npm's packages their folder's."""
        if environment.python:
            return self._absolute(environment.python)
        inside = (NODE_MODULES,) if environment.npm else ("bin", "python")
        return os.path.join(self.folder(environment), *inside)

    def folder(self, environment: Environment) -> str:
        """Return where that of a list is, whether it is there or not."""
        digest = self._stats.digest(self.requirements(environment)) or ""
        made_for = " ".join(this_platform()) if environment.npm else machine.python_build()
        name = hashlib.sha256(f"{digest} {made_for}".encode()).hexdigest()
        return os.path.join(cache_root(), MADE, name)

    def is_missing(self, environment: Environment) -> bool:
        """Return whether it has to be made first; not where Node is to run it, and is missing."""
        if environment.python or (environment.is_optional and find_node(self._stats) is None):
            return False
        self._found.pop(environment, None)
        self._looked.pop(self.interpreter(environment), None)
        return self._is_absent(environment)

    def _is_absent(self, environment: Environment) -> bool:
        absent = self._stats.look(self.interpreter(environment)) == ABSENT
        return absent and not environment.python

    def digest(self, package: str, environment: Environment) -> str | None:
        """Return what `look` has of one of its packages; None if that is not installed.

        Raises:
            StepError: Its interpreter is of no use.
        """
        if environment.npm:
            found = self._node_digest(environment) if package == NODE else None
            return found or self._listed(environment, "").get(package)
        if self._is_absent(environment):
            return _NOT_MADE
        python, installed = self._installed(environment, "")
        return python.build if package == INTERPRETER else installed.digest(package)

    def look(self, environment: Environment, where: str) -> Interpreter:
        """Return what it is now; see core.ports.Fingerprints."""
        if environment not in self._found:
            self._found[environment] = self._look(environment, where)
        return self._found[environment]

    def _look(self, environment: Environment, where: str) -> Interpreter:
        path, replaces = self.interpreter(environment), environment.replaces
        if environment.npm:
            return self._look_at_npm(environment, where)
        if self.is_missing(environment):
            return Interpreter(path, (), {environment.package(replaces): _NOT_MADE}, replaces)
        python, installed = self._installed(environment, where)
        if environment.needs:
            _see_needs(installed, environment, path, where)
            names = [name for name in sorted(installed.names()) if name not in SEEDS]
        else:
            names = _loaded(installed, _runtimes(installed, environment, path, where))
        packages = {environment.package(INTERPRETER): python.build}
        for name in names:
            packages[environment.package(name)] = installed.digest(name) or ""
        return Interpreter(path, (*python.prefixes, *python.sites), packages, replaces)

    def _look_at_npm(self, environment: Environment, where: str) -> Interpreter:
        """Packages count by the list: what npm installs has the integrity that is in it."""
        node = find_node(self._stats) if NODE in environment.needs else None
        there = not self._is_absent(environment)
        folder = self.folder(environment) if there else ""
        folders = [folder] if there else []
        listed = self._listed(environment, where)
        packages = {environment.package(name): digest for name, digest in listed.items()}
        if NODE in environment.needs:
            packages[environment.package(NODE)] = self._node_digest(environment)
        folders += node_folders(node) if node else ()
        return Interpreter(node or "", tuple(folders), packages, NPM, folder)

    def _listed(self, environment: Environment, where: str) -> dict[str, str]:
        path = self.requirements(environment)
        try:
            with open(path, encoding="utf-8") as file:
                return packages_listed(file.read())
        except (OSError, ValueError) as error:
            what = f"{path} is no list of npm's packages: {error}"
            raise StepError(what, where=where, fix="let `npm install` write it anew") from None

    def _node_digest(self, environment: Environment) -> str:
        """Return what runs the packages; `not made yet` where they are not there."""
        path = find_node(self._stats)
        found = None if path is None else node_build(path, self._stats)
        if found is None:
            return NOT_INSTALLED
        return _NOT_MADE if self._is_absent(environment) else found

    def _installed(self, environment: Environment, where: str) -> tuple[Python, Distributions]:
        path = self.interpreter(environment)
        if path not in self._looked:
            python = look_at(path, self._stats, where)
            self._looked[path] = python, Distributions(self._stats, python.sites)
        return self._looked[path]


def _see_needs(installed: Distributions, environment: Environment, path: str, where: str) -> None:
    """See that a framework is installed.

    Raises:
        StepError: A distribution of it is not.
    """
    lacking = [name for name in environment.needs if not installed.stands_for(name)]
    if not lacking:
        return
    fix = (
        f"`{path} -m pip install {' '.join(lacking)}`"
        if environment.python
        else f"add `{lacking[0]}==VERSION` to {environment.requirements}"
    )
    raise StepError(
        f"the interpreter {path} has no {' and no '.join(lacking)}", where=where, fix=fix
    )


def _runtimes(
    installed: Distributions, environment: Environment, path: str, where: str
) -> tuple[str, ...]:
    """The distributions of ONNX Runtime.

    Raises:
        StepError: There is none.
    """
    runtimes = installed.stands_for(RUNTIME)
    if not runtimes:
        raise StepError(
            f"the interpreter {path} has no ONNX Runtime",
            where=where,
            fix=f"`{path} -m pip install onnxruntime-openvino`, or the package that the target needs"
            if environment.python
            else f"add `onnxruntime-openvino==VERSION`, or what the target needs, to "
            f"{environment.requirements}",
        )
    return runtimes


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
