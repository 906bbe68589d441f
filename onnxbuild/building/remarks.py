"""Notes of a build for the user: what the machine lacks, what recipes doubt."""

from onnxbuild.adapters.kernel import kernel_watch, landlock
from onnxbuild.building.request import Loaded, Request, feature_remarks, is_whole
from onnxbuild.project_folder import root_reason
from onnxbuild.recipe.checks.remarks import doubts_of


def new_store_remark(request: Request) -> str:
    """Say where the store was created, and why there."""
    root, project = request.store_root, request.project
    return f"new store: {root}" + (f" ({root_reason(project)})" if root.parent == project else "")


def build_remarks(request: Request, loaded: Loaded) -> list[str]:
    """Return notes for the user about the machine and the recipes."""
    found = []
    unseen = kernel_watch.reason_not()
    if not landlock.abi():
        found.append(f"no Landlock ({landlock.reason_not()}): {kernel_watch.not_refused(unseen)}")
    if unseen:
        found.append(f"no seccomp notifications ({unseen}): {kernel_watch.NOT_SEEN}")
    for recipe in loaded.recipes:
        found += map(str, feature_remarks(recipe))
    for recipe in loaded.recipes if is_whole(request) else ():
        found += map(str, doubts_of(recipe))
    return found
