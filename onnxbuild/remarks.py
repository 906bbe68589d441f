"""Notes of a build for the user: what the machine lacks, what recipes doubt, what out/ still holds."""

from __future__ import annotations

from typing import Any

from onnxbuild.adapters import machine
from onnxbuild.adapters.kernel import kernel_watch, landlock
from onnxbuild.recipe.checks.advisories import doubts_of
from onnxbuild.recipe.checks.session import session_remarks
from onnxbuild.recipe.project import root_reason
from onnxbuild.request import Loaded, Request
from onnxbuild.wiring import Workspace


def new_store_remark(request: Request) -> str:
    """Say where the store was created, and why there.

    Args:
        request: What is built.
    """
    root, project = request.store_root, request.project
    return f"new store: {root}" + (f" ({root_reason(project)})" if root.parent == project else "")


def build_remarks(request: Request, loaded: Loaded, workspace: Workspace) -> list[str]:
    """Return notes for the user about the machine and the content of out/.

    Args:
        request: What is built.
        loaded: Its recipes.
        workspace: Project and store.
    """
    found = []
    unseen = kernel_watch.reason_not()
    if not landlock.abi():
        found.append(f"no Landlock in this kernel: {kernel_watch.not_refused(unseen)}")
    if unseen:
        found.append(f"no seccomp notifications ({unseen}): {kernel_watch.NOT_SEEN}")
    for recipe in loaded.recipes:
        found += session_remarks(recipe, machine.usable_cores())
    for recipe in () if request.only else loaded.recipes:
        found += doubts_of(recipe)
        ahead: Any = recipe.sections["ahead_of_time"]
        names = {variant.name for variant in recipe.variants}
        names |= {*ahead.folders(names), *(each.name for each in recipe.formats)}
        found += [
            f"{folder} is of a variant that '{recipe.name}' no longer has"
            for folder in workspace.views.forgotten(recipe.name, names)
        ]
    return found
