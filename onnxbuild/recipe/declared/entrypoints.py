"""The user's callables as a recipe names them: found on disk, never run."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from onnxbuild.catalog import MODEL_SOURCES, SECTIONS
from onnxbuild.core.recipe import DUMMY_DATA, FILE_DATA, Entrypoint, Location
from onnxbuild.core.source_error import SourceError
from onnxbuild.document.faults import Fault, Faults, hinted, nearest, show
from onnxbuild.document.node import Node, dotted, plain
from onnxbuild.document.node import Path as KeyPath
from onnxbuild.recipe.declared.definitions import likely_models, top_level_names
from onnxbuild.recipe.declared.globs import Glob
from onnxbuild.recipe.declared.outside_project import (
    Named,
    OutsideNames,
    is_in_package,
    package_path,
)
from onnxbuild.recipe.parts.keys import built_in
from onnxbuild.recipe.templates.extend import (
    Sources,
    absolute,
    near_sibling,
    path_from_above,
    relative_to_project,
)
from onnxbuild.regular_files import read_user_file


def entrypoint_fix(text: str, form: str, key: KeyPath, folder: Path) -> str:
    """Return what to write in place of a text that is no `FILE.py:CALLABLE`.

    Args:
        text: As it is written.
        form: The forms that are taken there.
        key: Where it is in the recipe.
        folder: That paths are relative to.
    """
    if "::" in text:
        return f"write `{text.replace('::', ':')}`"
    home, _, name = text.rpartition(":")
    if home and name.isidentifier() and not home.endswith(".py"):
        is_there = absolute(Path(f"{home}.py"), folder).is_file()
        otherwise = "end the file's name with `.py`, or name a module with dots"
        return f"write `{home}.py:{name}`" if is_there else otherwise
    is_model = key[0] == "model"
    if text.endswith(".py"):
        return (
            f"write `{text}:{_likely(absolute(Path(text), folder)) if is_model else 'CALLABLE'}`"
        )
    source = _source_of(absolute(Path(text), folder)) if is_model else ""
    if not source:
        return f"write {form}"
    return f"write `model: {{{source}: {text}}}`" if len(key) == 1 else f"write `{source}: {text}`"


def _likely(file: Path) -> str:
    """Return the name of the callable that probably makes the model; `CALLABLE` where none is known."""
    try:
        names = likely_models(read_user_file(file))
    except (OSError, ValueError):
        names = []
    return next(iter(names), "CALLABLE")


def _source_of(path: Path) -> str:
    """Return the key of `model` that takes a file or a folder, by its name or by what is in it; empty for none."""
    for name, source in MODEL_SOURCES.items():
        try:
            if path.suffix.lower() in source.suffixes or source.takes(path):
                return name
        except (OSError, ValueError):
            continue
    return ""


_FORM = "FILE.py:CALLABLE or package.module:CALLABLE"
_DATA_SUFFIXES = (".npy", ".npz", ".wav", "/", "*")
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class EntrypointReader:
    """Reads entrypoints; each source file is parsed once and each pattern expanded once.

    Attributes:
        asked: (source file, name that it was asked to define).
    """

    def __init__(self, sources: Sources, environment: Mapping[str, str], glob: Glob) -> None:
        self._sources = sources
        self._environment = environment
        self._glob = glob
        self.asked: set[tuple[Path, str]] = set()
        self._names: dict[Path, frozenset[str] | None] = {}
        self._expanded: dict[tuple[str, Path], list[Path]] = {}

    def read(
        self, node: Node, path: KeyPath, sound: Callable[..., bool], faults: Faults
    ) -> Entrypoint | None:
        """The entrypoint at `node`, or None where it has faults.

        Args:
            node: A string, or a mapping.
            path: Where it stands in the recipe.
            sound: Whether the schema has no fault at a path; only such parts are read.
            faults: Takes what is wrong.
        """
        is_short = not isinstance(node.value, dict)
        if path[0] == "providers" or _is_file(path):  # a plug-in's library, or a file of data
            return self._plain_data(node, path, faults)
        if _takes_files(path) and is_short and self._is_plain_data(node):
            return self._plain_data(node, path, faults) if sound(*path) else None
        if is_short and node.value in built_in(path):
            return Entrypoint(str(node.value)) if sound(*path) else None
        target = node if is_short else node.child("entrypoint")
        target_path = path if is_short else (*path, "entrypoint")
        outside = OutsideNames(dotted(path), self._sources.project)
        found = None
        if target is not None and sound(*target_path):
            found = self._target(str(target.value), target.at, target_path, outside, faults)
        args, files, env = (
            node.child(key) if sound(*path, key) else None for key in ("args", "files", "env")
        )
        expanded = () if files is None else tuple(self._files(files, (*path, "files"), faults))
        declared = outside.files(expanded)
        variables = {} if env is None else self._env(env, (*path, "env"), faults)
        if found is None or not sound(*path):
            return None
        return Entrypoint(
            target=found[0],
            args={} if args is None else plain(args),
            files=declared,
            env=variables,
            roots=found[1],
            outside=outside.folders,
        )

    def _is_plain_data(self, node: Node) -> bool:
        """Return whether a node is data itself, and no callable that yields it."""
        text = str(node.value)
        folder = absolute(Path(text), self._sources.folder(node.at.path))
        return text == DUMMY_DATA or text.endswith(_DATA_SUFFIXES) or folder.is_dir()

    def _plain_data(self, node: Node, path: KeyPath, faults: Faults) -> Entrypoint | None:
        if node.value == DUMMY_DATA:
            return Entrypoint(DUMMY_DATA)
        outside = OutsideNames(dotted(path), self._sources.project)
        listed = node if node.items else Node(node.at, (node,))
        files = outside.files(self._files(listed, path, faults))
        return Entrypoint(FILE_DATA, files=files, outside=outside.folders) if files else None

    def _installed(self, node: Node, path: KeyPath, faults: Faults) -> Iterator[Named]:
        """The file of a path in an installed package; nothing where it is not there."""
        try:
            file = package_path(str(node.value))
        except SourceError as error:
            faults.add(Fault(f"{dotted(path)}: {error.what}", node.at, error.fix, path))
            return
        if file.is_file():
            yield Named(file.parent, [file], in_package=True)
            return
        near = near_sibling(file, (file.suffix,))
        what = hinted(f"{dotted(path)} is {show(str(node.value))}, which is no file", near)
        faults.add(Fault(what, node.at, "name a file of that package", path))

    def _target(
        self, text: str, at: Location, path: KeyPath, outside: OutsideNames, faults: Faults
    ) -> tuple[str, tuple[str, ...]] | None:
        """(target, roots)."""
        home, _, name = text.rpartition(":")
        form = _form(path)
        folder = self._sources.folder(at.path)
        is_named = bool(home) and name.isidentifier()
        if is_named and not home.endswith(".py") and _MODULE.fullmatch(home):
            return text, outside.code_folders((folder, self._sources.project))
        if not is_named or not home.endswith(".py"):
            near = nearest(text, built_in(path))
            what = f"{dotted(path)} is {show(text)}"
            fix = f"write `{near}`" if near else entrypoint_fix(text, form, path, folder)
            faults.add(Fault(hinted(what, near, f"expected {form}"), at, fix, path))
            return None
        file = absolute(Path(home), folder)
        refusal = self._refusal(file, home, name, folder)
        if refusal is not None:
            what, fix = refusal
            faults.add(Fault(f"{dotted(path)}: {what}", at, fix, path))
            return None
        target = f"{outside.code_file(file)}:{name}"
        return target, outside.code_folders((file.parent, folder, self._sources.project))

    def _refusal(self, file: Path, home: str, name: str, folder: Path) -> tuple[str, str] | None:
        """Return (what, fix) where the file is missing or does not define the name; else None."""
        try:
            if file not in self._names:
                self._names[file] = top_level_names(read_user_file(file))
        except (OSError, ValueError) as error:
            near = near_sibling(file, (".py",))
            shown = show(relative_to_project(file, self._sources.project))
            if near == file.name:
                reason = getattr(error, "strerror", None) or str(error)
                return f"{shown} can't be read: {reason}", "check what it is, and who may read it"
            meant = (
                f"{home[: -len(file.name)]}{near}"
                if near
                else path_from_above(home, folder, self._sources.project)
            )
            what = hinted(f"there is no file {shown}", near)
            fix = f"write `{meant}:{name}`" if meant else "write a path relative to this recipe"
            return what, fix
        self.asked.add((file, name))
        names = self._names[file]
        if names is None or name in names:
            return None
        alike = [each for each in names if each.isupper() == name.isupper()]  # no constants
        near = nearest(name, sorted(each for each in alike if not each.startswith("_")))
        fix = f"write `{home}:{near}`" if near else f"define `{name}` in {home}"
        return hinted(f"{home} defines no '{name}'", near), fix

    def _files(self, node: Node, path: KeyPath, faults: Faults) -> Iterator[Named]:
        """The files of each path or pattern."""
        for n, item in enumerate(node.items):
            if is_in_package(str(item.value)):
                yield from self._installed(item, path, faults)
                continue
            pattern, folder = str(item.value), self._sources.folder(item.at.path)
            try:
                if (pattern, folder) not in self._expanded:
                    self._expanded[pattern, folder] = self._glob.expand(pattern, folder)
            except (OSError, ValueError, RuntimeError) as error:
                what = f"{dotted((*path, n))} is {show(pattern)}: {error}"
                faults.add(Fault(what, item.at, "name files that can be read", path))
                continue
            found, project = self._expanded[pattern, folder], self._sources.project
            if not found:
                shown = show(relative_to_project(folder, project))
                what = f"{show(pattern)} in {dotted(path)} matches no file below {shown}"
                meant = path_from_above(pattern, folder, project, Glob(project).expand)
                fix = "write a path or glob relative to this recipe, or remove it"
                fix = f"write `{meant}`" if meant else fix
                faults.add(Fault(what, item.at, fix, path))
            yield Named(self._glob.anchor(pattern, folder), found)

    def _env(self, node: Node, path: KeyPath, faults: Faults) -> dict[str, str]:
        if not node.items:
            return {name: str(member.node.value) for name, member in node.members.items()}
        values = {}
        for n, item in enumerate(node.items):
            name = str(item.value)
            if name in self._environment:
                values[name] = self._environment[name]
                continue
            what = f"environment variable {show(name)} of {dotted((*path, n))} is not set"
            fix = f"`export {name}=...`, or write its value: `env: {{{name}: ...}}`"
            faults.add(Fault(what, item.at, fix, path))
        return values


def _is_file(path: KeyPath) -> bool:
    """Return whether `path` names one data file, or a list of them, and never a callable."""
    section = SECTIONS.get(str(path[0]))
    return section is not None and section.below.get(str(path[-1])) in {"file", "files"}


def _form(path: KeyPath) -> str:
    """Return what may stand at `path`, in words."""
    files: tuple[str, ...] = (".npz or .npy files", DUMMY_DATA) if _takes_files(path) else ()
    *most, last = (_FORM, *files, *built_in(path))
    return f"{', '.join(most)}, or {last}" if most else last


def _takes_files(path: KeyPath) -> bool:
    """Return whether data files may stand at `path` instead of a callable that yields data."""
    return any(path == (name, key) for name, each in SECTIONS.items() for key in each.files)
