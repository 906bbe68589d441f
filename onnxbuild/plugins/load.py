"""Import a plug-in, and take what it brings; whatever goes wrong there is a fault that names it."""

import contextlib
import hashlib
import importlib
import importlib.util
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from onnxbuild.core.errors import PluginError
from onnxbuild.core.external_code import external_code, message_of
from onnxbuild.core.provider import Provider
from onnxbuild.core.step import StepKind
from onnxbuild.expansion.feature import Feature
from onnxbuild.expansion.plugin import Plugin
from onnxbuild.plugins.guarded import guarded
from onnxbuild.plugins.installed import Installed, code_of

_STREAMS = {0: "standard input", 1: "standard output", 2: "standard error"}
_DONE, _CLOSED = b"done", b"closed "


def harm_of(load: Callable[[], object]) -> str:
    """Return what importing a plug-in does to its process, as the end of a sentence; empty for nothing.

    Where a process has threads, or can't be forked, nothing is tried.

    Args:
        load: Imports it; what it raises is no harm.
    """
    if not hasattr(os, "fork") or threading.active_count() > 1:
        return ""
    sys.stdout.flush()
    sys.stderr.flush()
    reads, writes = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of threads of native code
        child = os.fork()
    if child == 0:
        _try_and_exit(load, writes)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    if said == _DONE:
        return ""
    if said.startswith(_CLOSED):
        return f"closes or replaces {said.removeprefix(_CLOSED).decode()}"
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return f"makes its process end by {signal.Signals(-code).name}"
    return f"ends its process with exit code {code}"


def _try_and_exit(load: Callable[[], object], writes: int) -> None:
    """Import it in silence, answer, and end this process."""
    silent = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(silent, stream)
    sys.stdout = sys.stderr = os.fdopen(silent, "w")
    before = {stream: _identity(stream) for stream in _STREAMS}
    with contextlib.suppress(BaseException):  # the import that counts reports it
        load()
    changed = [name for stream, name in _STREAMS.items() if _identity(stream) != before[stream]]
    os.write(writes, _CLOSED + " and ".join(changed).encode() if changed else _DONE)
    os._exit(0)


def _identity(stream: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(stream)
    except OSError:
        return None
    return found.st_dev, found.st_ino


NAMES = ("FEATURES", "FEATURE")
"""Names that a project's own file may give to what it brings; the first that it has is taken."""

_SHOWN = 200


class _UnusableError(Exception):
    """Error about an object that a plug-in names: it is missing, or nothing that a plug-in can bring.

    Args:
        place: The module's file, where it is known.
    """

    def __init__(self, what: str, place: str = "") -> None:
        super().__init__(what)
        self.place = place


def load_installed(found: Installed) -> Plugin:
    """Import what the entry points of a distribution name."""
    files, folders = code_of(found)
    empty = Plugin(found.name, found.version, found.info, files=files, folders=folders)
    if not found.entries:
        what = "its entry_points.txt can't be read"
        return replace(empty, fault=PluginError(what, where=_place(empty), fix=empty.mend))

    def values() -> Iterator[tuple[str, object]]:
        for _, value in found.entries:
            module_name, _, attribute = (part.strip() for part in value.partition(":"))
            attribute = attribute.partition("[")[0].strip()
            module = importlib.import_module(module_name)
            file = str(getattr(module, "__file__", None) or found.info)
            yield (
                file,
                _named(
                    module, attribute, file, f"its entry point names '{value}', which is not there"
                ),
            )

    return _taken(empty, values)


def load_file(project: Path, name: str) -> Plugin:
    """Import a project's own file, with its folder and the root at the end of the import path.

    Args:
        name: The file, relative to the root.
    """
    path = str(project / name)
    empty = Plugin(name, "", path, files=(path,))
    before = set(sys.modules)

    def values() -> Iterator[tuple[str, object]]:
        with _on_path([os.path.dirname(path), str(project)]), _no_bytecode():
            module = _module_at(path)
        attribute = next((each for each in NAMES if hasattr(module, each)), NAMES[0])
        yield path, _named(module, attribute, path, f"it defines no {' and no '.join(NAMES)}")

    plugin = _taken(empty, values)
    helpers = _helpers(before, project)
    for module in helpers:  # another project may have others of the same names
        del sys.modules[module]
    return replace(plugin, files=(path, *sorted(set(helpers.values()))))


def module_name(path: str) -> str:
    """Return the name that a project's own file is imported by: no other module has it."""
    return f"onnxbuild_plugin_{hashlib.sha256(path.encode()).hexdigest()[:16]}"


def features_of(values: Iterable[object], owner: str) -> tuple[list[Feature], list[Provider]]:
    """Return the features and providers among what a plug-in names; a bare step kind becomes a feature.

    Raises:
        Exception: A value is something else.
    """
    features: list[Feature] = []
    providers: list[Provider] = []
    for value in values:
        if isinstance(value, Feature):
            features.append(value)
        elif isinstance(value, Provider):
            providers.append(value)
        elif isinstance(value, StepKind):
            features.append(Feature(name=f"{owner} {value.name}", kinds=(value,)))
        elif isinstance(value, (tuple, list)):
            more = features_of(value, owner)
            features += more[0]
            providers += more[1]
        else:
            raise _UnusableError(
                f"it names {value!r:.{_SHOWN}}; expected a Feature, a Provider, a StepKind, or a "
                "tuple of them"
            )
    return features, providers


def forget(files: Iterable[str]) -> None:
    """Drop the modules that were loaded from some files, so that they are imported again."""
    stale = set(files)
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) in stale:
            del sys.modules[name]
    importlib.invalidate_caches()


def _taken(empty: Plugin, values: Callable[[], Iterator[tuple[str, object]]]) -> Plugin:
    """The plug-in with what it names; with a fault if that can't be imported. What it prints is no output of ours."""
    file = empty.file
    features: list[Feature] = []
    providers: list[Provider] = []

    if harm := harm_of(lambda: list(values())):
        what = f"the plug-in {harm} when it is imported"
        return replace(empty, fault=PluginError(what, where=_place(empty, file), fix=empty.mend))

    def blamed(error: BaseException) -> PluginError:
        place = getattr(error, "place", "") or _line_of(error, empty.files) or file
        return PluginError(_said(error), where=_place(empty, place), fix=empty.mend)

    try:
        with external_code(blamed, passing=(), exits_too=True), redirect_stdout(sys.stderr):
            for file, value in values():  # noqa: B007 - the last one is shown
                more = features_of([value], empty.name)
                features += more[0]
                providers += more[1]
    except PluginError as fault:
        return replace(empty, file=file, fault=fault)
    own = replace(empty, file=file)
    return replace(
        own, features=tuple(guarded(each, own) for each in features), providers=tuple(providers)
    )


def _said(error: BaseException) -> str:
    if isinstance(error, _UnusableError):
        return str(error)
    said = str(error.msg or "") if isinstance(error, SyntaxError) else message_of(error)
    line = said.partition("\n")[0]
    shown = f": {line}" if line else ""
    return f"the plug-in raises {type(error).__name__} when it is imported{shown}"


def _place(plugin: Plugin, place: str = "") -> str:
    return plugin.name if plugin.of_project and not place else _shown(plugin, place)


def _shown(plugin: Plugin, place: str) -> str:
    return place if plugin.of_project else f"{plugin.label} ({place or plugin.file})"


def _line_of(error: BaseException, files: Iterable[str]) -> str:
    """`FILE:LINE`, the innermost line in one of the plug-in's files; empty for none."""
    own = set(files)
    if isinstance(error, SyntaxError) and error.filename in own:
        return f"{error.filename}:{error.lineno or 1}"
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.filename in own:
            return f"{frame.filename}:{frame.lineno}"
    return ""


def _named(module: ModuleType, attributes: str, file: str, what: str) -> Any:
    found: Any = module
    for part in attributes.split("."):
        if not hasattr(found, part):
            raise _UnusableError(what, file)
        found = getattr(found, part)
    return found


def _module_at(path: str) -> ModuleType:
    name = module_name(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their annotations up there
    spec.loader.exec_module(module)
    return module


@contextmanager
def _on_path(folders: list[str]) -> Iterator[None]:
    """At the end: no file of a project takes the place of an installed module in this process."""
    added = [folder for folder in dict.fromkeys(folders) if folder not in sys.path]
    sys.path += added
    try:
        yield
    finally:
        for folder in added:
            sys.path.remove(folder)


@contextmanager
def _no_bytecode() -> Iterator[None]:
    """Write no __pycache__: it would change a folder that the run looks at, which is then no witness."""
    written = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = written


def _helpers(before: set[str], project: Path) -> dict[str, str]:
    """Modules of the project that were loaded since: name -> file."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name in before or name.startswith("onnxbuild_plugin_") or not isinstance(file, str):
            continue
        if file.startswith(f"{project}{os.sep}") and not file.startswith(f"{sys.prefix}{os.sep}"):
            found[name] = file
    return found
