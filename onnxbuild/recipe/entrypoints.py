"""The user's callables as a recipe names them: found on disk, never run."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

from onnxbuild.core.errors import did_you_mean
from onnxbuild.core.recipe import Entrypoint, Location
from onnxbuild.recipe.extend import Sources, absolute, relative_to_project, sibling_names
from onnxbuild.recipe.faults import Fault, Faults, show
from onnxbuild.recipe.globs import Glob
from onnxbuild.recipe.node import Node
from onnxbuild.recipe.node import Path as KeyPath
from onnxbuild.recipe.node import dotted, plain

_FORM = "FILE.py:CALLABLE or package.module:CALLABLE"
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class EntrypointReader:
    """Reads entrypoints; each source file is parsed once and each pattern expanded once."""

    def __init__(self, sources: Sources, environment: Mapping[str, str], glob: Glob) -> None:
        self._sources = sources
        self._environment = environment
        self._glob = glob
        self._names: dict[Path, frozenset[str] | None] = {}
        self._expanded: dict[tuple[str, Path], list[Path]] = {}

    def read(self, node: Node, path: KeyPath, faults: Faults) -> Entrypoint | None:
        """The entrypoint at `node`, or None where one of its faults is reported.

        Args:
            node: Valid by the schema: a string, or a mapping.
            path: Where it stands in the recipe.
            faults: Takes what is wrong.
        """
        is_short = isinstance(node.value, str)
        target = node if is_short else node.child("entrypoint")
        assert target is not None
        target_path = path if is_short else (*path, "entrypoint")
        args, files, env = (node.child(key) for key in ("args", "files", "env"))
        found = self._target(str(target.value), target.at, target_path, faults)
        expanded = () if files is None else tuple(self._files(files, (*path, "files"), faults))
        variables = {} if env is None else self._env(env, (*path, "env"), faults)
        if found is None:
            return None
        return Entrypoint(
            target=found[0],
            args={} if args is None else plain(args),
            files=tuple(sorted(set(expanded))),
            env=variables,
            roots=found[1],
        )

    def _target(
        self, text: str, at: Location, path: KeyPath, faults: Faults
    ) -> tuple[str, tuple[str, ...]] | None:
        """(target, roots)."""
        home, _, name = text.rpartition(":")
        if not home or not name.isidentifier():
            fix = f"write `{text}:CALLABLE`" if text.endswith(".py") else f"write {_FORM}"
            what = f"{dotted(path)} is {show(text)}; expected {_FORM}"
            faults.add(Fault(what, at, fix, path))
            return None
        folder = self._sources.folder(at.path)
        if not home.endswith(".py"):
            if not _MODULE.fullmatch(home):
                fix = "end the file's name with `.py`, or name a module with dots"
                what = f"{dotted(path)} is {show(text)}; expected {_FORM}"
                faults.add(Fault(what, at, fix, path))
                return None
            return text, self._roots(folder, self._sources.project)
        file = absolute(Path(home), folder)
        if not self._check_file(file, home, name, at, path, faults):
            return None
        target = f"{relative_to_project(file, self._sources.project)}:{name}"
        return target, self._roots(file.parent, folder, self._sources.project)

    def _check_file(
        self, file: Path, home: str, name: str, at: Location, path: KeyPath, faults: Faults
    ) -> bool:
        try:
            content = file.read_bytes() if file not in self._names else b""
        except (OSError, ValueError):
            near = did_you_mean(file.name, sibling_names(file, (".py",)))
            shown = show(relative_to_project(absolute(file), self._sources.project))
            what = f"{dotted(path)} names {show(home)}, and there is no file {shown}"
            fix = (
                f"write `{home[: -len(file.name)]}{near.split(chr(39))[1]}:{name}`" if near else ""
            )
            fix = fix or "write a path relative to this recipe"
            faults.add(Fault(f"{what}; {near}" if near else what, at, fix, path))
            return False
        if file not in self._names:
            self._names[file] = top_level_names(content)
        names = self._names[file]
        if names is None or name in names:
            return True
        public = sorted(each for each in names if not each.startswith("_"))
        near = did_you_mean(name, public)
        what = f"{home} defines no '{name}'"
        fix = f"write `{home}:{near.split(chr(39))[1]}`" if near else f"define `{name}` in {home}"
        faults.add(Fault(f"{what}; {near}" if near else what, at, fix, path))
        return False

    def _roots(self, *folders: Path) -> tuple[str, ...]:
        shown = (relative_to_project(folder, self._sources.project) for folder in folders)
        return tuple(dict.fromkeys(shown))

    def _files(self, node: Node, path: KeyPath, faults: Faults) -> Iterator[str]:
        for n, item in enumerate(node.items):
            pattern, folder = str(item.value), self._sources.folder(item.at.path)
            try:
                if (pattern, folder) not in self._expanded:
                    self._expanded[pattern, folder] = self._glob.expand(pattern, folder)
            except (OSError, ValueError, RuntimeError) as error:
                what = f"{dotted((*path, n))} is {show(pattern)}: {error}"
                faults.add(Fault(what, item.at, "name files that can be read", path))
                continue
            found = self._expanded[pattern, folder]
            if not found:
                shown = show(relative_to_project(folder, self._sources.project))
                what = f"{show(pattern)} in {dotted(path)} matches no file below {shown}"
                fix = "write a path or glob relative to this recipe, or remove it"
                faults.add(Fault(what, item.at, fix, path))
            yield from (relative_to_project(each, self._sources.project) for each in found)

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


def top_level_names(source: bytes) -> frozenset[str] | None:
    """The names that a Python file binds; None where that can't be known without running it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # the step that imports it reports it, with the interpreter's own words
    names: set[str] = set()
    for node in _at_module_level(tree.body):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return None if names & {"*", "__getattr__"} else frozenset(names)


def _at_module_level(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """All nodes but those inside of functions and classes."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))
