"""Read a misspelt key as the one that it means, so that nothing is missed elsewhere because of it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from onnxbuild.document.faults import Fault
from onnxbuild.document.node import Node, node_at, renamed


def as_meant(
    root: Node, faults_of: Callable[[Node], list[Fault]], fixed: Collection[str]
) -> tuple[Node, list[Fault]]:
    """Return the tree with the keys that are meant in place of those that are not known, and the faults of these.

    What such a key holds can then be checked as all else.

    Args:
        root: A recipe.
        faults_of: Returns the faults that the schema finds in a tree.
        fixed: Keys that nothing is taken for: what they say has been read.
    """
    reported: list[Fault] = []
    while True:
        mended = root
        for fault in faults_of(root):
            above = node_at(mended, fault.path[:-1])
            if not fault.meant or fault.meant in fixed or above is None:
                continue
            if fault.meant not in above.members:  # another key means it, too
                mended = renamed(mended, fault.path, fault.meant)
                reported.append(fault)
        if mended is root:
            return root, reported
        root = mended
