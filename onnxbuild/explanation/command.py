"""Text that `explain` prints of a request."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from onnxbuild.adapters import locate
from onnxbuild.building.request import Request
from onnxbuild.explanation.explain import explain_file
from onnxbuild.plugins.bring import bring_plugins, refuse_faulty
from onnxbuild.project_folder import find_project


def explain(recipes: tuple[Path, ...], settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the recipes of all files, each in full.

    Args:
        recipes: Paths of recipe files.
        settings: `--set`.

    Raises:
        UsageError: A file is missing, or the files are in different projects.
        RecipeErrors: All faults of a file.
        PluginError: A plug-in is faulty.
    """
    project = Request(recipes).project
    refuse_faulty(bring_plugins(project))
    for path in recipes:
        yield from explain_file(
            path,
            project=find_project(path),
            overrides=settings,
            environment=locate.environment(),
        )
