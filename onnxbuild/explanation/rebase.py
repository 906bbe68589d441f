"""Paths that a base writes relative to itself, relative to the recipe."""

import os
import re
from collections.abc import Callable
from pathlib import Path as FilePath

from onnxbuild.catalog import MODEL_SOURCES, SECTIONS
from onnxbuild.core.recipe import DUMMY_DATA, Location
from onnxbuild.document.node import Member, Node, Path, mapping, sequence
from onnxbuild.recipe.parts.keys import built_in
from onnxbuild.recipe.parts.parts import entrypoint_paths
from onnxbuild.recipe.templates.extend import absolute

_NOT_RELATIVE = re.compile(r"~|[a-z]+:")
"""A home folder, `package:NAME/FOLDER`."""

_OF_A_TARGET = ("library", "requirements", "python")


def rebased(root: Node, folder_of: Callable[[Location], FilePath], home: FilePath) -> Node:
    """The recipe with every path relative to one folder.

    Args:
        root: As it was understood.
        folder_of: Place -> the folder that paths written there are relative to.
    """
    takers = [path for path, _ in entrypoint_paths()]

    def walk(node: Node, path: Path) -> Node:
        if node.members:
            below = {
                key: Member(m.at, walk(m.node, (*path, key))) for key, m in node.members.items()
            }
            return mapping(below, node.at)
        if node.items:
            items = [walk(item, (*path, n)) for n, item in enumerate(node.items)]
            return sequence(items, node.at)
        folder = folder_of(node.at)
        if isinstance(node.value, str) and folder != home and _is_path(path, node.value, takers):
            return Node(node.at, _moved(node.value, folder, home))
        return node

    return walk(root, ())


def _is_path(path: Path, text: str, takers: list[tuple[str, ...]]) -> bool:
    if path[0] == "providers":
        return path[-1] in _OF_A_TARGET
    section = SECTIONS.get(str(path[0]))
    if section is not None and section.below:
        key = path[-2] if isinstance(path[-1], int) and len(path) > 1 else path[-1]
        match section.below.get(str(key)):
            case "file" | "files":
                return not _NOT_RELATIVE.match(text)
            case "callable":
                return text.rpartition(":")[0].endswith(".py")
    taker = next((each for each in takers if path[: len(each)] == each), None)
    if taker is None or text == DUMMY_DATA or text in built_in(path):
        return False
    match path[len(taker) :]:
        case () | ("entrypoint",):
            file, colon, _ = text.rpartition(":")
            return not colon or file.endswith(".py")
        case ("files", int()) | ("environment", "requirements" | "python"):
            return True
        case (str() as key,):
            return key in MODEL_SOURCES and not _NOT_RELATIVE.match(text)
    return False


def _moved(text: str, folder: FilePath, home: FilePath) -> str:
    file, colon, name = text.rpartition(":") if ".py:" in text else (text, "", "")
    end = "/" if file.endswith("/") else ""
    return os.path.relpath(absolute(FilePath(file), folder), home) + end + colon + name
