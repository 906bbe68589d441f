"""Files and folders that a build was recorded to have used."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from onnxbuild.adapters.toolchain.fingerprints import IMPORT_PATH, SITE_FOLDERS
from onnxbuild.building.api import BuildResult
from onnxbuild.catalog import plugins
from onnxbuild.core.action import NO_FILE, Action, Observed
from onnxbuild.core.decision import Reason, changed_observed
from onnxbuild.core.places import real_path
from onnxbuild.core.ports import Fingerprints
from onnxbuild.core.recipe import Entrypoint
from onnxbuild.engine.decide import current_state
from onnxbuild.project_folder import PYPROJECT


@dataclass(slots=True)
class Recorded:
    """Files and folders, absolute.

    Attributes:
        files: Their content counts.
        names: That they are there counts, and nothing else.
    """

    files: set[Path] = field(default_factory=set)
    names: set[Path] = field(default_factory=set)


def recorded_inputs(result: BuildResult, project: Path, places: Mapping[str, str]) -> Recorded:
    """Recipes and their bases, the project's own plug-ins, sources, data, what folders were seen to hold.

    Args:
        result: A build that passed.
        places: Folders of this machine that records may name.
    """
    found = Recorded()
    for path in result.loaded.paths:
        (found.names if path.is_dir() else found.files).add(path)
    own = [each for each in plugins() if each.of_project]
    found.files.update(Path(path) for each in own for path in each.files)
    if own:
        found.files.add(project / PYPROJECT)
    for recipe in result.loaded.recipes:
        for entrypoint in (recipe.model, *recipe.entrypoints.values()):
            _add_entrypoint(found, entrypoint, project)
    for name, each in result.report.results.items():
        action = result.report.actions[name]
        folders = {**places, **action.outside}
        found.files.update(_absolute(path, project, folders) for path in action.files)
        _add_observed(found, each.observed, project, folders)
    found.names -= found.files
    return found


def _add_entrypoint(found: Recorded, entrypoint: Entrypoint, project: Path) -> None:
    """Add what loading a recipe looks at, whether or not a step then uses it."""
    file = entrypoint.target.rpartition(":")[0]
    if file.endswith(".py"):
        found.files.add(_absolute(file, project, entrypoint.outside))
    found.names.update(_absolute(path, project, entrypoint.outside) for path in entrypoint.files)


def _add_observed(
    found: Recorded, observed: Observed, project: Path, folders: Mapping[str, str]
) -> None:
    found.files.update(_absolute(path, project, folders) for path in observed.sources)
    for path, digest in observed.data.items():
        absolute = _absolute(path, project, folders)
        if digest == NO_FILE:
            continue  # looked for in vain
        if path.endswith("/"):
            found.names.update((absolute, *(absolute.iterdir() if absolute.is_dir() else ())))
        else:
            found.files.add(absolute)
    for folder, listing in observed.listings.items():
        if folder not in {IMPORT_PATH, SITE_FOLDERS}:
            absolute = _absolute(folder, project, folders)
            found.names.update((absolute, *(absolute / name for name in listing.found)))
    found.names.update(_absolute(link, project, folders) for link in observed.links)
    found.names.update(_absolute(path, project, folders) for path in observed.existence)


def _absolute(path: str, project: Path, folders: Mapping[str, str]) -> Path:
    return Path(os.path.normpath(project / real_path(path, folders)))


def unlike_record(result: BuildResult, fingerprints: Fingerprints) -> Iterator[Reason]:
    """Return what is not as a build was recorded to have used it.

    Args:
        fingerprints: How things are now, or in a copy.
    """
    for name, each in result.report.results.items():
        action = result.report.actions[name]
        yield from _changed_files(action, fingerprints)
        now = current_state(each.observed, action.outside, fingerprints)
        yield from changed_observed(each.observed, now)


def _changed_files(action: Action, fingerprints: Fingerprints) -> Iterator[Reason]:
    for path, digest in action.files.items():
        now = fingerprints.file(real_path(path, action.outside)) or NO_FILE
        if now != digest:
            yield Reason(f"file {path}", digest[:12], now[:12])
