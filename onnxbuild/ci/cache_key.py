"""A key for a CI's cache of the store: it changes when what decides a build changes."""

import hashlib
import os
import platform
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from onnxbuild import __version__
from onnxbuild.adapters import machine
from onnxbuild.adapters.disk.index import Index
from onnxbuild.adapters.disk.statcache import StatCache
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.building.request import Loaded, Request, declared_files, graph_of, load
from onnxbuild.catalog import CATALOG
from onnxbuild.core.entrypoint import NO_CODE, Entrypoint
from onnxbuild.core.graph import Graph
from onnxbuild.core.places import real_path
from onnxbuild.output.store import CacheKeyRecord
from onnxbuild.plugins.declared import declared_files as own_plugins

_DIGITS = 32


def cache_key(request: Request) -> CacheKeyRecord:
    """Return the key of a request: of its recipes, locks, sources and declared files, this Python and this system.

    A key can't know what a build will find: modules that the model imports from other folders. That is no harm: what a
    cache brings is looked at by content, so a key that stayed the same costs time and gives no stale result.

    Raises:
        RecipeErrors, UsageError: The request is faulty.
    """
    loaded = load(request)
    graph = graph_of(request, loaded)
    project = request.project
    files = sorted({os.path.relpath(path, project) for path in _files(request, loaded, graph)})
    digest = hashlib.sha256()
    given = [f"--set {key}={value}" for key, value in sorted((request.settings or {}).items())]
    for line in (
        *given,
        *_software(graph),
        *(f"{name} {_sha256(project / name)}" for name in files),
    ):
        digest.update(f"{line}\n".encode("utf-8", "surrogateescape"))
    python = ".".join(platform.python_version_tuple()[:2])
    prefix = f"onnxbuild-{platform.system()}-{platform.machine()}-py{python}-"
    key = f"{prefix}{digest.hexdigest()[:_DIGITS]}"
    return {
        "type": "cache key",
        "key": key,
        "restore_keys": [f"{key}-", prefix],
        "path": os.path.relpath(request.store_root),
        "files": files,
    }


def _files(request: Request, loaded: Loaded, graph: Graph) -> Iterator[Path]:
    """Recipes, their bases and lists, locks, plug-ins, the Python next to entrypoints, declared files."""
    for path in loaded.paths:
        if path.is_file():
            yield path
    for path in loaded.by_file:
        lock = path.with_suffix(".lock").absolute()
        if lock.is_file():
            yield lock
    yield from (request.project / name for name in own_plugins(request.project))
    yield from (path for path in declared_files(graph, request.project) if path.is_file())
    for step in graph.steps.values():
        kind = CATALOG.get(step.kind)
        for each in () if kind is None else kind.entrypoints(step.params):
            yield from _code_of(each, request.project)


def _code_of(entrypoint: Entrypoint, project: Path) -> Iterator[Path]:
    """Yield the Python files next to a callable, wherever its file or module is found; for plain data none."""
    if entrypoint.target in NO_CODE:
        return
    source = entrypoint.target.rpartition(":")[0]
    if source.endswith(".py"):
        found: Path | None = project / real_path(source, entrypoint.outside)
    else:
        roots = [project / real_path(root, entrypoint.outside) for root in entrypoint.roots]
        found = _module(source, (*roots, *map(Path, sys.path)))
    if found is not None:
        yield from (path for path in found.parent.glob("*.py") if path.is_file())


def _module(name: str, folders: Iterable[Path]) -> Path | None:
    """Return the file of `package.module` in the first folder that has it; nothing is imported."""
    inside = Path(*name.split("."))
    files = (
        folder / each
        for folder in folders
        for each in (inside / "__init__.py", inside.with_name(f"{inside.name}.py"))
    )
    return next((file for file in files if file.is_file()), None)


def _software(graph: Graph) -> Iterator[str]:
    """Yield the versions of what runs the steps: onnxbuild, Python, the packages that the steps use."""
    yield f"onnxbuild {__version__}"
    yield machine.python_build()
    installed = Distributions(StatCache(Index(Path(":memory:"))))
    kinds = [CATALOG[step.kind] for step in graph.steps.values() if step.kind in CATALOG]
    for name in sorted({name.rstrip("?") for kind in kinds for name in kind.toolchain}):
        version = installed.version(name)
        if version is not None:
            yield f"{name} {version}"


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
