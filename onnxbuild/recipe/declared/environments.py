"""The key `environment` of a target -> an Environment: a list is read, an interpreter is not run."""

import os
from pathlib import Path

from onnxbuild.core.environment import Environment
from onnxbuild.core.places import HOME, inside_name
from onnxbuild.core.recipe import Location
from onnxbuild.document.faults import Fault, Faults, hinted, show
from onnxbuild.document.node import Node
from onnxbuild.document.node import Path as KeyPath
from onnxbuild.recipe.templates.extend import (
    Sources,
    absolute,
    near_sibling,
    path_from_above,
    relative_to_project,
)
from onnxbuild.requirements import read_pins


def read_environment(
    node: Node, path: KeyPath, sources: Sources, faults: Faults
) -> Environment | None:
    """The environment at `node`, or None where it has faults.

    Args:
        node: A mapping with `requirements` or `python`.
        path: Where it stands in the recipe.
        sources: Paths are relative to its files; a list is one more of them.
        faults: Takes what is wrong.
    """
    listed, python = node.child("requirements"), node.child("python")
    if (listed is None) == (python is None):
        what = "environment has both requirements and python" if listed else "environment is empty"
        fix = "write `environment: {requirements: FILE}` or `environment: {python: PATH}`"
        faults.add(Fault(f"{what}; expected one of the two", node.at, fix, path))
        return None
    written = listed or python
    assert written is not None
    text = str(written.value)
    folder = sources.folder(written.at.path)
    file = absolute(Path(os.path.expanduser(text)), folder)  # noqa: PTH111 - `~user` stays as it is
    if python is not None:
        return Environment(python=_recorded(file, sources.project))
    try:
        content = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        near = near_sibling(file, (".txt",))
        reason = (
            "which is not there" if isinstance(error, FileNotFoundError) else "which can't be read"
        )
        what = hinted(f"the environment's requirements are {show(text)}, {reason}", near)
        meant = path_from_above(text, folder, sources.project)
        fix = f"write `{meant}`" if meant else "write a path relative to this recipe"
        faults.add(Fault(what, written.at, fix, path))
        return None
    shown = sources.add(file)
    _, open_ends = read_pins(content)
    for each in open_ends:
        faults.add(Fault(each.what, Location(shown, each.line, 1), each.fix, path))
    return None if open_ends else Environment(requirements=_recorded(file, sources.project))


def _recorded(file: Path, project: Path) -> str:
    """Relative to the project or to the home folder where it is in one of them."""
    shown = relative_to_project(file, project) if file.is_relative_to(project) else str(file)
    if not os.path.isabs(shown):  # noqa: PTH117 - text
        return inside_name(shown)
    home = os.path.expanduser("~")  # noqa: PTH111 - text
    return f"{HOME}{shown[len(home) :]}" if shown.startswith(f"{home}/") else shown
