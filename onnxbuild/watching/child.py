"""One build of `onnxbuild watch`, in its own process: events as JSON lines, and a last line with the result."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from onnxbuild.adapters.console.sinks import JsonLines
from onnxbuild.adapters.watch.build_process import end_with
from onnxbuild.adapters.watch.changes import sources_below
from onnxbuild.core.errors import EXIT_INTERRUPTED, BuildError
from onnxbuild.own_folder import OWN_FOLDER

RESULT = "watch_result"
"""The `type` of the last line."""


def main() -> None:
    """Build what the first argument asks for (JSON: `Asked`)."""
    asked = json.loads(sys.argv[1])
    end_with(asked["parent"])
    try:
        result = build_once(asked)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    sys.stdout.write(f"{json.dumps({'type': RESULT, **result})}\n")
    sys.stdout.flush()


def build_once(asked: dict[str, Any]) -> dict[str, Any]:
    """Build, and return the result as JSON.

    Args:
        asked: `recipes`, `only`, `settings`, `store`, `jobs`, `memory`, `timeout`, `keep_going`.

    Returns: `exit_code`; `rows` of the table, and lines of what was `skipped`; `error`, of a recipe that
        can't be read; `inputs`: files and folders whose change asks for another build.
    """
    from onnxbuild.building.api import Request, build
    from onnxbuild.building.outcome import skipped_targets, summarize
    from onnxbuild.building.wiring import RunOptions
    from onnxbuild.reporting.report import write_failed_pages

    recipes = tuple(map(Path, asked["recipes"]))
    request = Request(recipes, tuple(asked["only"]), asked["settings"], asked["store"])
    options = RunOptions(
        asked["jobs"], asked["memory"], asked["timeout"], asked["keep_going"], lazy=True
    )
    found: dict[str, Any] = {"exit_code": 0, "rows": [], "skipped": [], "error": "", "steps": 0}
    try:
        result = build(request, options, [JsonLines(sys.stdout)])
        write_failed_pages(request, result)
    except BuildError as error:
        return {
            **found,
            "exit_code": error.exit_code,
            "error": str(error),
            "inputs": _inputs(request, whole=False),
        }
    found["exit_code"] = result.exit_code
    if result.recalled is not None:
        found |= {"rows": result.recalled["summary"], "skipped": result.recalled["skipped"]}
    else:
        found |= {
            "rows": summarize(result.graph, result.report),
            "skipped": skipped_targets(result.graph, result.report),
        }
    return {**found, "inputs": _inputs(request, whole=result.exit_code == 0)}


def _inputs(request: Any, *, whole: bool) -> list[str]:
    """Return what the last good build looked at; after a failure, the project's code, recipes and declared files as well.

    A failed step does not say what it has read, and what mends it may be any file.
    """
    from onnxbuild.adapters.memo import seen_paths
    from onnxbuild.building.up_to_date import memo_key
    from onnxbuild.catalog import CATALOG

    recipes = [path.absolute() for path in request.recipes]
    paths = [str(each) for path in recipes for each in (path, path.parent)]
    try:
        project, root = request.project, request.store_root
    except BuildError:
        return sorted(set(paths))
    seen = seen_paths(root, memo_key(request, CATALOG))
    own = _of_the_project(map(os.path.normpath, seen), str(root))
    if not whole or not own:
        own += sources_below(str(project))
        own += _declared(request)
    return sorted({*paths, *own})


def _declared(request: Any) -> list[str]:
    """Return the declared files, and their folders, for files that are not there yet; empty if a recipe can't be loaded."""
    from onnxbuild.building.request import declared_files, graph_of

    try:
        files = {
            os.path.normpath(each) for each in declared_files(graph_of(request), request.project)
        }
    except BuildError:
        return []
    return sorted({*files, *map(os.path.dirname, files)})


def _of_the_project(paths: Iterable[str], store: str) -> list[str]:
    """Return the paths that a person edits: no installed software, nothing of this program, nothing of the store."""
    software = (
        OWN_FOLDER,
        store,
        sys.prefix,
        sys.base_prefix,
        "/usr",
        "/lib",
        "/etc",
        "/proc",
        "/sys",
        "/dev",
    )
    parts = ("/site-packages/", "/dist-packages/")
    return [
        path
        for path in paths
        if not any(path == each or path.startswith(f"{each}{os.sep}") for each in software)
        and not any(part in path for part in parts)
    ]
