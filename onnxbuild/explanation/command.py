"""Text that `explain` prints of a request."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from onnxbuild.adapters import locate
from onnxbuild.building.request import Request
from onnxbuild.explanation.explain import explain_file
from onnxbuild.plugins.bring import bring_plugins, refuse_faulty
from onnxbuild.project_folder import find_project


def explain(recipes: tuple[Path, ...], settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the recipes of all files in full; those of components together.

    Raises:
        UsageError: The files are in different projects; else as `explained`.
    """
    _ = Request(recipes).project
    for path in recipes:
        yield from dict.fromkeys(explained(path, settings).values())


def explained(path: Path, settings: Mapping[str, str]) -> dict[str, str]:
    """Return recipe -> its text in full, of all recipes of a file.

    Args:
        path: The file.
        settings: `--set`.

    Raises:
        UsageError: The file is missing.
        RecipeErrors: All faults of the file.
        PluginError: A plug-in is faulty.
    """
    project = find_project(path)
    refuse_faulty(bring_plugins(project))
    return explain_file(
        path, project=project, overrides=settings, environment=locate.environment()
    )
