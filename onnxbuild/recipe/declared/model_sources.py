"""`model: {onnx: FILE}`: a model that is a file or a folder fills in what the recipe leaves out."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from onnxbuild.catalog import FRONTENDS, MODEL_SOURCES
from onnxbuild.core.params import from_json
from onnxbuild.core.recipe import FILE_DATA, FRONTEND, Entrypoint, Location
from onnxbuild.core.source_error import SourceError
from onnxbuild.document.faults import Fault, Faults, choices, hinted, show
from onnxbuild.document.node import (
    Member,
    Node,
    locate_key,
    mapping,
    node_of,
    plain,
    scalar,
    unknown_paths,
)
from onnxbuild.expansion.model_source import ENVIRONMENT, ModelSource, SourceFacts
from onnxbuild.recipe.declared.outside_project import (
    Named,
    OutsideNames,
    is_in_package,
    package_path,
)
from onnxbuild.recipe.templates.extend import (
    Sources,
    absolute,
    merge,
    near_sibling,
    path_from_above,
    relative_to_project,
)

FILLED_IN = ("dummy_inputs", "dynamic_axes")
"""Keys of which a recipe may write a part and a model's file says the rest."""

_CALLABLE = ("entrypoint", "args", "files", "env")


def source_of(root: Node) -> str:
    """Return the form in which `model` names a file; empty where it names a callable, or nothing."""
    name = form_of(root)
    return "" if name and MODEL_SOURCES[name].is_callable else name


def form_of(root: Node) -> str:
    """Return the key of `model` that names a file, or a callable of one frontend; empty for neither."""
    model = root.child("model")
    members = {} if model is None else model.members
    return next((name for name in members if name in MODEL_SOURCES), "")


@dataclass(frozen=True, slots=True)
class Completed:
    """A recipe with what its model's file says below it.

    Attributes:
        root: The recipe.
        model: The model's files; None where a callable gives it.
    """

    root: Node
    model: Entrypoint | None = None


class ModelSources:
    """Reads models' files; each is looked at once, whatever recipes are made of it.

    Attributes:
        read: The files whose content decided a recipe, absolute.
        folders: Their folders, and links among them.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._looked: dict[tuple[str, Path], object] = {}
        self.read: set[Path] = set()
        self.folders: set[Path] = set()

    def with_components(self, root: Node) -> Node:
        """Return the recipe with the components that its model stands for, below what it writes itself; else as it is.

        What is wrong with the model is reported where it is read.

        Args:
            root: Bases merged, templates as they are.
        """
        name = form_of(root)
        source = MODEL_SOURCES.get(name)
        if source is None or source.is_callable or root.members["model"].node.templated:
            return root
        member = root.members["model"].node.members[name]
        model = plain(root.members["model"].node)
        own = {key: value for key, value in model.items() if key != name}
        try:
            options: object = from_json(source.options, own, "model")
            path = self._place(str(member.node.value), member.node.at)
            keys = source.components(path, self._look(name, source, path), options, plain(root))
        except (SourceError, OSError, ValueError):
            return root
        if not keys:
            return root
        left = {key: each for key, each in root.members.items() if key != "model"}
        return merge(node_of(keys, member.node.at), mapping(left, root.at))

    def complete(self, root: Node, faults: Faults, *, sound: bool) -> Completed | None:
        """The recipe with what its model's file says below it; None where that is not known.

        Args:
            faults: Takes what is wrong.
            sound: The schema has no fault in `model`.
        """
        name = form_of(root)
        if not name:
            faults.update(_unused_environment(root))
            return Completed(root)
        node, source = root.members["model"].node, MODEL_SOURCES[name]
        frontend = source.frontend or name
        wrong = [*_misplaced(node, name, source), *_other_frontend(root, name, frontend)]
        faults.update(wrong)
        if wrong or not sound or unknown_paths(node):
            return None
        if source.is_callable:
            return Completed(_with_entrypoint(root, name, frontend))
        at, written = node.members[name].node.at, str(node.members[name].node.value)
        path = Path(written)
        own = {key: plain(member.node) for key, member in node.members.items() if key != name}
        options: object = from_json(source.options, own, "model")
        try:
            path = self._place(written, at)
            facts = source.read(path, self._look(name, source, path), options, plain(root))
        except SourceError as error:
            where = locate_key(root, error.key) if error.key else at
            faults.add(Fault(error.what, where, error.fix, error.key or ("model", name)))
            return None
        except (OSError, ValueError) as error:
            faults.add(self._unreadable(path, written, name, at, error))
            return None
        self.read |= set(facts.read)
        below = node_of({"frontend": frontend, **facts.recipe}, at)
        declared = self._declared(facts, in_package=is_in_package(written))
        return Completed(merge(below, root), declared)

    def _place(self, written: str, at: Location) -> Path:
        """Return the absolute path of the model.

        Raises:
            SourceError: It is in a package that is not installed.
        """
        if is_in_package(written):
            return package_path(written)
        path = Path(written).expanduser() if written.startswith("~") else Path(written)
        return absolute(path, self._sources.folder(at.path))

    def _look(self, name: str, source: ModelSource, path: Path) -> object:
        self._note(path, *((path,) if source.is_folder else ()))
        if (name, path) not in self._looked:
            self._looked[name, path] = source.look(path)
        return self._looked[name, path]

    def _note(self, path: Path, *folders: Path) -> None:
        """Note what decides whether a path is there, and where it leads."""
        self.folders |= {path.parent, *folders}
        if path.is_symlink():
            self.folders.add(path)

    def _declared(self, facts: SourceFacts, *, in_package: bool) -> Entrypoint:
        """The model's files as steps know them, the first one first.

        Args:
            facts: What the model says.
            in_package: They are in an installed package.
        """
        for file in (*facts.read, *facts.files):
            self._note(file)
        names = OutsideNames("model", self._sources.project)
        folder = facts.files[0].parent
        first = names.files([Named(folder, facts.files[:1], in_package)])
        others = set(names.files([Named(folder, facts.files, in_package)])).difference(first)
        files = (*first, *sorted(others))
        return Entrypoint(FILE_DATA, args=dict(facts.facts), files=files, outside=names.folders)

    def _unreadable(
        self, path: Path, written: str, name: str, at: Location, error: Exception
    ) -> Fault:
        shown = show(relative_to_project(path, self._sources.project))
        if not isinstance(error, FileNotFoundError):
            reason = getattr(error, "strerror", None) or str(error)
            what = f"model.{name}: {shown} can't be read: {reason}"
            return Fault(what, at, "check what it is, and who may read it", ("model", name))
        near = near_sibling(path, (path.suffix,))
        near = "" if near == path.name else near
        kind = "folder" if MODEL_SOURCES[name].is_folder else "file"
        what = hinted(f"model.{name}: there is no {kind} {shown}", near)
        folder, project = self._sources.folder(at.path), self._sources.project
        meant = (
            f"{written[: len(written) - len(path.name)]}{near}"
            if near
            else path_from_above(written, folder, project)
        )
        fix = f"write `{meant}`" if meant else "write a path relative to this recipe"
        return Fault(what, at, fix, ("model", name))


def _with_entrypoint(root: Node, name: str, frontend: str) -> Node:
    """The recipe in which `model: {NAME: CALLABLE}` is written as a frontend and its callable."""
    model = root.members["model"]
    members = {
        "entrypoint" if key == name else key: member for key, member in model.node.members.items()
    }
    at = model.node.members[name].at
    return mapping(
        {
            **root.members,
            "model": Member(model.at, mapping(members, model.node.at)),
            "frontend": Member(at, scalar(frontend, at)),
        },
        root.at,
    )


def _unused_environment(root: Node) -> Iterator[Fault]:
    """`environment` next to a callable whose frontend runs in none."""
    model, written = root.child("model"), root.child("frontend")
    member = None if model is None else model.members.get(ENVIRONMENT)
    name = FRONTEND if written is None else str(written.value)
    known = FRONTENDS.get(name)
    if member is None or known is None or known.environment is not None:
        return
    others = ", ".join(key for key, each in FRONTENDS.items() if each.environment is not None)
    what = f"model has `{ENVIRONMENT}`, and the frontend {name} runs in onnxbuild's own; {others} have one"
    yield Fault(what, member.at, f"remove `{ENVIRONMENT}`", ("model", ENVIRONMENT))


def _misplaced(node: Node, name: str, source: ModelSource) -> list[Fault]:
    """Keys next to the file's that are a callable's, or another frontend's."""
    own = {name, *(each.name for each in fields(source.options))}
    own |= {key for key in _CALLABLE[1:] if source.is_callable}
    found = []
    for key, member in node.members.items():
        if key in own or not (key in _CALLABLE or key in MODEL_SOURCES or _is_option(key)):
            continue
        what = f"model has `{name}` and `{key}`; next to `{name}` stands {_expected(own - {name})}"
        found.append(Fault(what, member.at, f"remove `{key}`", ("model", key)))
    return found


def _is_option(key: str) -> bool:
    return any(key == f.name for each in MODEL_SOURCES.values() for f in fields(each.options))


def _expected(keys: set[str]) -> str:
    return choices(sorted(keys)) if keys else "nothing else"


def _other_frontend(root: Node, name: str, frontend: str) -> Iterator[Fault]:
    written = root.child("frontend")
    if written is not None and written.value != frontend:
        what = f"frontend is {show(written.value)}, and the model is named by `{name}`"
        yield Fault(what, written.at, "remove `frontend`", ("frontend",))
