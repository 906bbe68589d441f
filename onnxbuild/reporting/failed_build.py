"""The page of a build that failed, in the place of the one that the build was asked to make."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from onnxbuild.adapters.disk.locks import wait_lock
from onnxbuild.building.api import BuildResult
from onnxbuild.building.request import Request
from onnxbuild.building.wiring import open_workspace
from onnxbuild.catalog import CATALOG
from onnxbuild.core.errors import UsageError
from onnxbuild.core.step import StepKind
from onnxbuild.reporting.report import report
from onnxbuild.steps.report import PAGE_FILE


def write_failed_pages(
    request: Request, result: BuildResult, *, catalog: Mapping[str, StepKind] = CATALOG
) -> dict[str, Path]:
    """Write the page of each recipe with `report: html` whose own was not made, because something failed.

    The step that makes the page follows all gates, so it does not run after one that failed. What is written here is what
    `onnxbuild report` writes. It is in out/RECIPE/report/ until a build that passes lays its own.

    Args:
        request: What was built.
        result: What the build gave.
        catalog: Step kinds by name.

    Returns: Recipe -> the page. A recipe of which nothing was built has none.

    Raises:
        StoreError: A folder can't be written.
    """
    if result.recalled is not None or result.exit_code == 0:
        return {}
    missing = [
        each
        for each in result.graph.deliverables
        if each.family.is_page and each.bundle.step not in result.report.results
    ]
    pages = {}
    for each in missing:
        try:
            content = report(request, recipe=each.recipe, catalog=catalog).page.encode()
        except UsageError:
            continue  # it failed before there was anything to show
        with closing(open_workspace(request.project, result.store)) as workspace:
            store_lock = wait_lock(workspace.root / "locks" / "store", shared=True)
            try:
                pages[each.recipe] = workspace.views.lay_page(
                    each.recipe, each.name, PAGE_FILE, content
                )
            finally:
                store_lock.release()
    return pages
