"""`model: {onnx: FILE}`: a model that is a file fills in what the recipe leaves out."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from onnxbuild.catalog import FRONTENDS
from onnxbuild.core.params import from_json
from onnxbuild.core.recipe import FILE_DATA, Entrypoint, Location
from onnxbuild.document.faults import Fault, Faults, choices, hinted, nearest, show
from onnxbuild.document.node import UNKNOWN, Node, locate_key, node_of, plain
from onnxbuild.expansion.feature import Frontend
from onnxbuild.expansion.model_source import ModelSource, SourceError, SourceFacts
from onnxbuild.recipe.declared.outside_project import OutsideNames
from onnxbuild.recipe.templates.extend import (
    Sources,
    absolute,
    merge,
    relative_to_project,
    sibling_names,
)

FILLED_IN = ("dummy_inputs", "dynamic_axes")
"""Keys of which a recipe may write a part and a model's file says the rest."""

_CALLABLE = ("entrypoint", "args", "files", "env")


def source_of(root: Node) -> str:
    """Return the frontend whose file `model` names; empty where it names a callable, or nothing."""
    model = root.child("model")
    members = {} if model is None else model.members
    return next((name for name in members if _source(name) is not None), "")


def _source(name: str) -> ModelSource | None:
    frontend: Frontend | None = FRONTENDS.get(name)
    return None if frontend is None else frontend.model_source


class ModelSources:
    """Reads models' files; each is read once for equal recipes.

    Attributes:
        read: The files whose content decided a recipe, absolute.
        folders: Their folders, and links among them.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._known: dict[str, SourceFacts | SourceError] = {}
        self.read: set[Path] = set()
        self.folders: set[Path] = set()
        self.entrypoint: Entrypoint | None = None

    def complete(self, root: Node, faults: Faults) -> Node | None:
        """The recipe with what its model's file says below it; None where that is not known.

        `entrypoint` is the model's afterwards; None where it is a callable.

        Args:
            root: The recipe, rendered.
            faults: Takes what is wrong.
        """
        self.entrypoint = None
        name = source_of(root)
        if not name:
            return root
        node = root.child("model")
        source = _source(name)
        assert node is not None
        assert source is not None
        wrong = list(_misplaced(node, name, source))
        faults.update(wrong)
        member = node.members[name]
        if wrong or not isinstance(member.node.value, str) or not _is_known(node):
            return None  # the schema says the rest
        at, written = member.node.at, str(member.node.value)
        path = absolute(Path(written), self._sources.folder(at.path))
        try:
            facts = self._facts(name, path, node, root)
        except SourceError as error:
            key = tuple(error.key.split(".")) if error.key else ()
            where = locate_key(root, key) if key else at
            faults.add(Fault(error.what, where, error.fix, key or ("model", name)))
            return None
        except (OSError, ValueError) as error:
            faults.add(self._unreadable(path, written, name, at, error))
            return None
        below = {"frontend": name, **facts.recipe}
        other = root.child("frontend")
        if other is not None and other.value != name:
            what = f"frontend is {show(other.value)}, and the model is named by `{name}`"
            faults.add(Fault(what, other.at, "remove `frontend`", ("frontend",)))
            return None
        self.entrypoint = self._declared(facts)
        return merge(node_of(below, at), root)

    def _facts(self, name: str, path: Path, node: Node, root: Node) -> SourceFacts:
        source = _source(name)
        assert source is not None
        own = {key: plain(member.node) for key, member in node.members.items() if key != name}
        written = plain(root)
        key = repr((name, path, written))
        if key not in self._known:
            self.folders.add(path.parent)
            if path.is_symlink():
                self.folders.add(path)
            try:
                options: object = from_json(source.options, own, "model")
                self._known[key] = source.read(path, options, written)
            except SourceError as error:
                self._known[key] = error
        found = self._known[key]
        self.read |= {path} if isinstance(found, SourceError) else set(found.read)
        if isinstance(found, SourceError):
            raise found
        return found

    def _declared(self, facts: SourceFacts) -> Entrypoint:
        """The model's files as steps know them, the first one first."""
        outside = OutsideNames("model", self._sources.project)
        folder = facts.files[0].parent
        names = outside.files([(folder, list(facts.files))])
        alone = OutsideNames("model", self._sources.project)
        (first,) = alone.files([(folder, [facts.files[0]])])
        ordered = (first, *(each for each in names if each != first))
        return Entrypoint(
            FILE_DATA, args=dict(facts.facts), files=ordered, outside=outside.folders
        )

    def _unreadable(
        self, path: Path, written: str, name: str, at: Location, error: Exception
    ) -> Fault:
        shown = show(relative_to_project(path, self._sources.project))
        if not isinstance(error, FileNotFoundError):
            reason = getattr(error, "strerror", None) or str(error)
            what = f"model.{name}: {shown} can't be read: {reason}"
            return Fault(what, at, "check what it is, and who may read it", ("model", name))
        near = nearest(path.name, sibling_names(path, (path.suffix,)))
        near = "" if near == path.name else near
        what = hinted(f"model.{name}: there is no file {shown}", near)
        fix = f"write `{written[: len(written) - len(path.name)]}{near}`" if near else ""
        return Fault(what, at, fix or "write a path relative to this recipe", ("model", name))


def _misplaced(node: Node, name: str, source: ModelSource) -> list[Fault]:
    """Keys next to the file's that are a callable's, or another frontend's."""
    own = {name, *(each.name for each in fields(source.options))}
    found = []
    for key, member in node.members.items():
        if key in own or not (key in _CALLABLE or _source(key) is not None or _is_option(key)):
            continue
        what = f"model has `{name}` and `{key}`; next to `{name}` stands {_expected(own - {name})}"
        found.append(Fault(what, member.at, f"remove `{key}`", ("model", key)))
    return found


def _is_option(key: str) -> bool:
    sources = [each.model_source for each in FRONTENDS.values()]
    return any(key == f.name for each in sources if each is not None for f in fields(each.options))


def _expected(keys: set[str]) -> str:
    return choices(sorted(keys)) if keys else "nothing else"


def _is_known(node: Node) -> bool:
    return all(member.node.value is not UNKNOWN for member in node.members.values())
