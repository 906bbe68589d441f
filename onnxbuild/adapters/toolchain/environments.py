"""Environments: of targets, of models' frameworks, of npm's packages: where each is, and what is installed there."""

import hashlib
import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from onnxbuild.adapters import machine
from onnxbuild.adapters.disk.statcache import ABSENT, StatCache
from onnxbuild.adapters.locate import cache_root
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.npm import (
    NODE_MODULES,
    find_node,
    node_build,
    node_folders,
    packages_listed,
    this_platform,
)
from onnxbuild.core.action import NOT_INSTALLED
from onnxbuild.core.environment import INTERPRETER, NODE, NPM, RUNTIME, Environment, Interpreter
from onnxbuild.core.errors import StepError
from onnxbuild.providers import all_providers

OLDEST = (3, 10)
"""The oldest Python that this program's own modules run on."""

_TIMEOUT_S = 60.0
_ASK = """\
import json, site, sys, sysconfig
paths = sysconfig.get_paths()
print(json.dumps({
    "build": f"{sys.implementation.cache_tag} {sys.version}",
    "version": sys.version_info[:2],
    "prefixes": [sys.prefix, sys.base_prefix, sys.exec_prefix, paths["stdlib"], paths["platstdlib"]],
    "sites": [*site.getsitepackages(), paths["purelib"], paths["platlib"]],
}))
"""


@dataclass(frozen=True, slots=True)
class Python:
    """Facts that an interpreter reports about itself.

    Attributes:
        build: Implementation, version, compiler.
        prefixes: Folders of the interpreter and its library.
        sites: Folders of installed packages, those that `.pth` files add last.
    """

    build: str
    prefixes: tuple[str, ...]
    sites: tuple[str, ...]


def look_at(path: str, stats: StatCache, where: str) -> Python:
    """Look at an interpreter; it is started once, and again when it has changed.

    Args:
        path: Absolute.
        where: Who asks for it, for messages.

    Raises:
        StepError: It is missing, is no interpreter, or is too old.
    """
    now = stats.look(path)
    if now == ABSENT or os.path.isdir(path):
        raise _no_interpreter(path, where)
    settings = os.path.join(os.path.dirname(os.path.dirname(path)), "pyvenv.cfg")
    witness = path if stats.look(settings) == ABSENT else settings
    text = stats.digest(witness, f"interpreter {now} {path} ", lambda _: _answer(path, where))
    found = json.loads(text or _answer(path, where))
    if tuple(found["version"]) < OLDEST:
        raise StepError(
            f"the interpreter {path} is Python {'.'.join(map(str, found['version']))}; expected "
            f"{'.'.join(map(str, OLDEST))} or later",
            where=where,
            fix="make an environment with a newer one",
        )
    sites = list(dict.fromkeys(map(os.path.realpath, found["sites"])))
    added = [each for site in sites for each in _added_by(site, stats)]
    return Python(
        found["build"],
        tuple(dict.fromkeys(found["prefixes"])),
        tuple(dict.fromkeys([*sites, *added])),
    )


def _no_interpreter(path: str, where: str) -> StepError:
    if os.path.isdir(path):
        inside = os.path.join(path, "bin", "python")
        fix = f"write `python: {inside}`" if os.path.exists(inside) else "name the program in it"
        return StepError(f"{path} is a folder; expected an interpreter", where=where, fix=fix)
    fix = f"`python -m venv {os.path.dirname(os.path.dirname(path))}` makes one; ONNX Runtime, "
    fix += "or the model's framework, has to be installed there, too"
    if os.path.islink(path):
        what = f"the interpreter {path} is a link to {os.readlink(path)}, which is not there"
        return StepError(what, where=where, fix="make the environment anew, or write another path")
    return StepError(f"there is no interpreter {path}", where=where, fix=fix)


def _answer(path: str, where: str) -> str:
    fix = "name the `python` of an environment, such as ../venvs/openvino/bin/python"
    try:
        done = subprocess.run(
            [path, "-I", "-B", "-c", _ASK],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except PermissionError:
        what = f"the interpreter {path} can't be executed: permission denied"
        raise StepError(what, where=where, fix=f"chmod +x {path}, or name another") from None
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = getattr(error, "strerror", None) or f"no answer within {_TIMEOUT_S:g} s"
        what = f"the interpreter {path} can't be executed: {reason}"
        raise StepError(what, where=where, fix=fix) from None
    try:
        json.loads(done.stdout)["sites"]
    except (ValueError, KeyError, TypeError):
        lines = (done.stderr.strip() or done.stdout.strip() or "it says nothing").splitlines()
        what = f"{path} is no Python interpreter that works: {lines[-1]}"
        raise StepError(what, where=where, fix=fix) from None
    return done.stdout.strip()


def _added_by(site: str, stats: StatCache) -> list[str]:
    """Folders that a site folder's `.pth` files add; lines of code in them don't count."""
    stats.look(site)
    try:
        names = sorted(name for name in os.listdir(site) if name.endswith(".pth"))
    except OSError:
        return []
    found = []
    for name in names:
        path = os.path.join(site, name)
        stats.look(path)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = [line.strip() for line in file]
        except OSError:
            continue
        for line in lines:
            folder = os.path.join(site, line)
            if (
                line
                and not line.startswith(("#", "import ", "import\t"))
                and os.path.isdir(folder)
            ):
                found.append(os.path.realpath(folder))
    return found


MADE = "environments"
"""Below the cache folder: a virtual environment for each list."""

_NOT_MADE = "not made yet"
SEEDS = frozenset({"pip", "setuptools", "wheel"})
"""Packages that a new environment has from the start; no step uses them."""


class Environments:
    """Environments as they are now; each is looked at once, until `forget`.

    Args:
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
