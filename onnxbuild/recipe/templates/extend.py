"""`extends`: a recipe over its base, mappings merged, lists and scalars replaced; paths relative to a recipe."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onnxbuild.core.errors import slips
from onnxbuild.document.faults import Fault, Faults, hinted, nearest, show
from onnxbuild.document.node import UNKNOWN, Member, Node, has_template, mapping
from onnxbuild.recipe.yaml.read import read_yaml
from onnxbuild.regular_files import read_user_file


def _exists(written: str, folder: Path) -> bool:
    return (folder / written).exists()


def path_from_above(
    written: str, folder: Path, project: Path, is_there: Callable[[str, Path], object] = _exists
) -> str:
    """The same path, written from the recipe's folder; empty unless a folder above holds it.

    Args:
        written: A path, or a pattern.
        folder: The recipe's, which holds nothing at that path.
        project: Root of the project, absolute: no folder above it is looked into.
        is_there: Whether something is at a path that counts from a folder.
    """
    if not written or Path(written).is_absolute():
        return ""
    above = [each for each in folder.parents if each.is_relative_to(project)]
    for each in above or [project]:
        try:
            if is_there(written, each):
                return os.path.relpath(each / written, folder)
        except (OSError, ValueError, RuntimeError):
            continue
    return ""


@dataclass(slots=True)
class Sources:
    """The files a recipe is made of.

    Attributes:
        project: The project's root, absolute.
        files: Name in messages -> absolute path, the recipe itself first.
    """

    project: Path
    files: dict[str, Path] = field(default_factory=dict)

    def add(self, file: Path) -> str:
        """Note that `file` is read; gives its name in messages."""
        shown = relative_to_project(file, self.project)
        self.files[shown] = file
        return shown

    def folder(self, shown: str) -> Path:
        """The folder that paths written in the file are relative to."""
        first = next(iter(self.files.values()))
        return self.files.get(shown, first).parent


def relative_to_project(path: Path, project: Path) -> str:
    """POSIX path relative to the project where inside of it, else absolute."""
    if path.is_relative_to(project):
        return path.relative_to(project).as_posix()
    real, root = path.resolve(), project.resolve()  # one of them may be reached by a link
    return real.relative_to(root).as_posix() if real.is_relative_to(root) else path.as_posix()


def absolute(path: Path, folder: Path | None = None) -> Path:
    """`path` below `folder` (or the current one), without `.` and `..`."""
    return Path(os.path.abspath(folder / path if folder else path))  # noqa: PTH100 - keeps links


def read_with_bases(
    file: Path, content: bytes, sources: Sources, faults: Faults
) -> tuple[Node | None, bool]:
    """The recipe merged over its bases, and whether all of them could be read.

    The recipe is None where nothing of it can be read.

    Args:
        file: The recipe, absolute.
        content: Its bytes.
        sources: Takes every file that is read.
        faults: Takes what is wrong.
    """
    layers: list[Node] = []
    chain: list[Path] = []
    complete = False
    while True:
        chain.append(file)
        shown = sources.add(file)
        root = read_yaml(content, shown, faults)
        if root is None or not isinstance(root.value, Mapping):
            if root is not None and root.value is not UNKNOWN:
                what = f"the recipe is {show(root.value)}; expected a mapping"
                faults.add(Fault(what, root.at, "start it with `version: 1`"))
            break
        layers.append(_without_extends(root))
        base = _base_of(root, file, chain, sources, faults)
        if base is None:
            complete = root.child("extends") is None
            break
        file, content = base
    if not layers:
        return None, False
    merged = layers.pop()
    while layers:
        over = layers.pop()
        merged = merge(_without_swept(merged, over), over)
    return merged, complete


def _without_swept(base: Node, over: Node) -> Node:
    """The base without what its matrix sweeps and the recipe over it has as a var: one value.

    In one file, or the other way round, a name in both is the matrix's.
    """
    matrix, names = base.child("matrix"), over.child("vars")
    if matrix is None or names is None or not isinstance(matrix.value, Mapping):
        return base
    again = over.child("matrix")
    fixed = names.members.keys() - (again.members.keys() if again is not None else ())
    kept = {name: member for name, member in matrix.members.items() if name not in fixed}
    if len(kept) == len(matrix.members):
        return base
    members = dict(base.members)
    del members["matrix"]
    if kept:
        members["matrix"] = Member(base.members["matrix"].at, mapping(kept, matrix.at))
    return mapping(members, base.at)


def merge(base: Node, over: Node) -> Node:
    """`over` over `base`: mappings merged key by key, anything else replaced."""
    if not isinstance(base.value, Mapping) or not isinstance(over.value, Mapping):
        return over
    members = dict(base.value)
    for key, member in over.value.items():
        below = members.get(key)
        node = member.node if below is None else merge(below.node, member.node)
        members[key] = Member(member.at, node)
    return mapping(members, over.at)


def _without_extends(root: Node) -> Node:
    return mapping({k: m for k, m in root.members.items() if k != "extends"}, root.at)


def _base_of(
    root: Node, file: Path, chain: list[Path], sources: Sources, faults: Faults
) -> tuple[Path, bytes] | None:
    """The base's path and bytes; None where there is none, or none that can be read."""
    node = root.child("extends")
    if node is None:
        return None
    if not isinstance(node.value, str) or not node.value:
        what = f"extends is {show(node.value)}; expected the path of a recipe"
        only = node.items[0].value if len(node.items) == 1 else None
        path = only if isinstance(only, str) else "base.yaml"
        faults.add(Fault(what, node.at, f"write `extends: {path}`"))
        return None
    if has_template(node.value):
        what = "extends can't be a template: it is read before vars are"
        faults.add(Fault(what, node.at, "write the path itself"))
        return None
    base = absolute(Path(node.value), file.parent)
    if base in chain:
        names = [relative_to_project(each, sources.project) for each in (*chain, base)]
        what = f"extends runs in a circle: {' -> '.join(names[chain.index(base) :])}"
        faults.add(Fault(what, node.at, "remove one of the `extends`"))
        return None
    try:
        return base, read_user_file(base)
    except OSError as error:
        gone = isinstance(error, FileNotFoundError)
        near = near_sibling(base, (".yaml", ".yml")) if gone else ""
        reason = "is not there" if gone else f"can't be read: {error.strerror}"
        what = hinted(f"extends names {show(node.value)}, which {reason}", near)
        meant = path_from_above(node.value, file.parent, sources.project) if gone else ""
        meant = f"{node.value[: -len(base.name)]}{near}" if near else meant
        fix = f"write `extends: {meant}`" if meant else "write a path relative to this file"
    except ValueError:
        what = f"extends is {show(node.value)}, which is no path"
        fix = "write `extends: base.yaml`"
    faults.add(Fault(what, node.at, fix))
    return None


def near_sibling(file: Path, suffixes: Iterable[str]) -> str:
    """Name of the file next to `file` that seems to be meant: itself, one that is alike, the only one of its kind.

    Empty if there is none.

    Args:
        file: A path, absolute.
        suffixes: Endings of the files that can be meant. They make no two alike: `own.py` is not `wine.py`.
    """
    wanted = tuple(suffixes)
    try:
        there = sorted(each for each in file.parent.iterdir() if each.suffix in wanted)
    except (OSError, ValueError):
        return ""
    if file in there:
        return file.name
    if len(there) == 1 and there[0].suffix:
        return there[0].name
    most = max(1, len(file.stem) // 2)
    return nearest(file.name, [each.name for each in there if slips(file.stem, each.stem) <= most])
