"""HTML reports of builds and variants, as `onnxbuild report` writes them."""

import os
from dataclasses import replace
from pathlib import Path

from onnxbuild.building.request import Request
from onnxbuild.python.arguments import path_given


def anchored(request: Request, store: Path) -> Request:
    """Return a request that means the same wherever the process goes: absolute paths, and the store that was used."""
    recipes = tuple(path.absolute() for path in request.recipes)
    return replace(request, recipes=recipes, store=str(store))


def write_report(
    request: Request, path: str | os.PathLike[str], *, recipe: str = "", bundle: str = ""
) -> Path:
    """Write the page of what is built of a request; return its path, absolute.

    Args:
        request: What was built, as `anchored` returns it.
        recipe: The one to show alone; empty for all.
        bundle: The variant of it to show alone; empty for all.

    Raises:
        UsageError: Nothing of it is built as the recipes are now, or `path` is empty.
        StoreError: The file can't be written.
    """
    from onnxbuild.adapters.disk.atomic_files import write_output
    from onnxbuild.reporting import report

    target = Path(path_given("path", path)).absolute()
    page = report(request, recipe=recipe, bundle=bundle).page
    write_output(target, page.encode())
    return target
