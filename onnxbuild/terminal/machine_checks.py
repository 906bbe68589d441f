"""Print the facts that `doctor` looks at, a line each, and return the problems that it finds."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from onnxbuild import __version__
from onnxbuild.core.errors import BuildError
from onnxbuild.terminal.table import say

if TYPE_CHECKING:
    from onnxbuild.expansion.plugin import Plugin

_PACKAGES = ("torch", "onnx", "onnxruntime", "onnxscript", "numpy", "transformers")
_NEEDED = _PACKAGES[:-1]
_MIB, _GIB = 1 << 20, 1 << 30
_DAY_S = 24 * 3600.0
_SCARCE_BYTES = 2 * _GIB


class Problem(NamedTuple):
    """Something that every build needs and that is missing, and what to type."""

    what: str
    fix: str


def problems_here(store: str | None) -> list[Problem]:
    """Print what this machine has; return what keeps it from building.

    Args:
        store: The store's folder; None for the project's.
    """
    problems = [*_packages(), *_plugins(), *_providers(), *_environments(), *_programs()]
    return [*problems, *_machine(), *_settings(), *_store(store)]


def _packages() -> list[Problem]:
    from onnxbuild.adapters import machine
    from onnxbuild.adapters.disk.index import Index
    from onnxbuild.adapters.disk.statcache import StatCache
    from onnxbuild.adapters.toolchain.distributions import Distributions

    say(f"onnxbuild    {__version__}, Python {machine.python_build().split()[1]}")
    found = Distributions(StatCache(Index(Path(":memory:"))))
    problems = []
    for name in _PACKAGES:
        version = found.version(name)
        say(f"{name:<12} {version or 'not installed'}")
        if version is None and name not in _NEEDED:
            say(f"               fix, if a recipe uses it: {_install(name)}")
        if version is None and name in _NEEDED:
            problems.append(Problem(f"the package '{name}' is not installed", _install(name)))
    return problems


def _providers() -> list[Problem]:
    from onnxbuild.onnxkit.providers.probe import probe_all

    try:
        probes = probe_all()
    except ImportError as error:
        return [
            Problem(f"onnxruntime can't be imported: {error}", _install("onnxruntime", again=True))
        ]
    for probe in probes:
        if probe.loads:
            say(f"provider     {probe.provider}: loads")
        elif probe.in_package:
            say(f"provider     {probe.provider}: does not load")
            for fault in probe.faults:
                say(f"             - {fault.what}")
                say(f"               fix: {fault.fix}")
    lost = [probe for probe in probes if not probe.in_package]
    say("             not in this onnxruntime:")
    for fix in dict.fromkeys(probe.fix for probe in lost):
        say(f"             - {', '.join(p.provider for p in lost if p.fix == fix)}: {fix}")
    cpu = next(probe for probe in probes if probe.provider == "cpu")
    again = _install("onnxruntime", again=True)
    return [] if cpu.loads else [Problem(f"the CPU provider does not load: {cpu.reason}", again)]


def _environments() -> list[Problem]:
    """List the environments of targets; `cache gc` removes unused ones, and a run makes them again."""
    from onnxbuild.adapters.toolchain.virtual_environments import made_environments

    for made in made_environments():
        say(f"environment  {made.folder}: {made.runtime or 'no ONNX Runtime'}")
        say(
            f"             of {made.requirements}, {made.size_bytes / _MIB:.0f} MiB, last used "
            f"{made.idle_s / _DAY_S:.0f} days ago"
        )
    return []


def _programs() -> list[Problem]:
    """Show the C++ compiler, Node and npm, which some features need."""
    from onnxbuild.adapters.toolchain.npm import program
    from onnxbuild.adapters.toolchain.step_environment import program_folders
    from onnxbuild.catalog import needing
    from onnxbuild.core.environment import NPM
    from onnxbuild.core.step import COMPILER, COMPILERS

    where = ":".join(program_folders())
    found = next(filter(None, (shutil.which(name, path=where) for name in COMPILERS)), None)
    lacking = f"no {' and no '.join(COMPILERS)}; {needing(COMPILER)} needs one"
    _say_program("c++", found, lacking, "g++")
    for name in ("node", "npm"):
        needed = f"none; {needing(NPM)} need it"
        _say_program(name, program(name), needed, name.replace("node", "nodejs"))
    return []


def _say_program(name: str, found: str | None, lacking: str, package: str) -> None:
    say(f"{name:<12} {found or lacking}")
    if not found:
        say(f"               fix: apt-get install {package}")


def _machine() -> list[Problem]:
    from onnxbuild.adapters import machine
    from onnxbuild.adapters.kernel import kernel_watch, landlock
    from onnxbuild.onnxkit.host.host import kernel_flags

    facts = machine.host_facts()
    flags = [flag for flag, there in kernel_flags().items() if there]
    cores, memory = machine.usable_cores(), machine.memory_bytes() / _GIB
    say(f"cpu          {machine.host_class()['cpu']}, {' '.join(flags) or 'no known flags'}")
    say(f"             {cores} cores, {memory:.1f} GiB")
    if facts.sums_saturate:
        say(
            "             no VNNI or AMX: int8 weights get scales at which no sums saturate (reduce_range: pairs)"
        )
    abi, unseen = landlock.abi(), kernel_watch.reason_not()
    fence = (
        f"Landlock ABI {abi}: undeclared reads are refused"
        if abi
        else f"no Landlock ({landlock.reason_not()}): {kernel_watch.not_refused(unseen)}"
    )
    watch = (
        f"no seccomp notifications ({unseen}): {kernel_watch.NOT_SEEN}"
        if unseen
        else "seccomp notifications: reads of all processes of a step are recorded"
    )
    say(f"sandbox      {machine.kernel()}: {fence}")
    say(f"             {watch}")
    return []


def _plugins() -> list[Problem]:
    """List what each plug-in brings; one that is faulty keeps recipes from being read."""
    from onnxbuild.plugins.bring import bring_plugins
    from onnxbuild.project_folder import find_project

    problems = []
    for each in bring_plugins(find_project(Path("recipe.yaml"))):
        say(f"plug-in      {each.label}: {_brought_by(each)}")
        say(f"             {each.file}")
        if each.fault is not None:
            problems.append(_faulty(each.fault))
    return problems


def _faulty(fault: BuildError) -> Problem:
    where = fault.where.removeprefix(f"{Path.cwd()}/")
    return Problem(
        f"a plug-in is faulty: {f'{where}: ' if where else ''}{fault.what}",
        fault.fix or "mend it, or take it out: pip uninstall, or `plugins` in pyproject.toml",
    )


def _install(package: str, *, again: bool = False) -> str:
    """Return the command that installs a package for the Python that runs this."""
    return f"{sys.executable} -m pip install {'--force-reinstall ' if again else ''}{package}"


def _brought_by(plugin: Plugin) -> str:
    if plugin.fault is not None:
        return "faulty"
    from onnxbuild.expansion.plugin import family_of

    named = [f"{family_of(each)} {each.name}" for each in plugin.features]
    named += [f"step {kind.name}" for each in plugin.features for kind in each.kinds]
    return ", ".join([*named, *(f"provider {each.name}" for each in plugin.providers)])


def _settings() -> list[Problem]:
    """Show the project's settings, and where each is from."""
    from onnxbuild.adapters import locate
    from onnxbuild.project_folder import find_project
    from onnxbuild.settings import read_settings

    try:
        settings = read_settings(find_project(Path("recipe.yaml")), locate.environment())
    except BuildError as error:
        return [Problem(f"settings are faulty: {error.where}: {error.what}", error.fix)]
    for key, value in settings.values.items():
        say(f"setting      {key} = {value!r} ({settings.sources[key]})")
    if url := settings.text("remote.url"):
        from onnxbuild.adapters.remote.opening import find_credentials

        say(f"remote       {url}: {find_credentials(url, locate.environment()).source}")
    return []


def _store(store: str | None) -> list[Problem]:
    from onnxbuild.adapters.locate import store_layers
    from onnxbuild.adapters.store.layered_store import BaseLayer
    from onnxbuild.project_folder import find_project

    root, *bases = store_layers(find_project(Path("recipe.yaml")), store)
    there = root
    while not there.exists():
        there = there.parent
    free = shutil.disk_usage(there).free
    say(f"store        {root}, {free / _GIB:.1f} GiB free")
    problems = []
    for base in map(BaseLayer, bases):
        say(f"store below  {base.root}, {base.trouble or 'only read'}")
        if base.trouble:
            fix = "write another folder in `store` of `[tool.onnxbuild]`, or leave it out"
            problems.append(
                Problem(f"the store below, {base.root}, is not used: {base.trouble}", fix)
            )
    if free < _SCARCE_BYTES:
        chosen = f" --store {store}" if store else ""
        problems.append(
            Problem(
                f"only {free / _GIB:.1f} GiB free for the store",
                f"onnxbuild cache gc{chosen} --keep-days 7, or run with --store FOLDER on another disk",
            )
        )
    return problems
