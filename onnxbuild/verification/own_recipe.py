"""The recipe that a release is built again from: one of the project at hand, never one that a release brings."""

import os
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from onnxbuild.adapters import git
from onnxbuild.core.errors import NotReproducibleError, UsageError
from onnxbuild.project_folder import find_project
from onnxbuild.release_format.forms import printable
from onnxbuild.release_format.layout import RELEASE_FILE, SUMS_FILE
from onnxbuild.release_format.released import Released

_NAME_IT = "name the recipe in your project that it should be: --recipe RECIPE.yaml"


@dataclass(frozen=True, slots=True)
class OwnRecipe:
    """A recipe of the user's.

    Attributes:
        path: Its file.
        description: Which file it is, and of which commit.
    """

    path: Path
    description: str


def own_recipe(release: Released, given: Path | None) -> OwnRecipe:
    """The recipe to build, and where it comes from.

    Args:
        release: The one to be built again.
        given: The recipe that the user named; None for the one that the lock names, which must be a
            file of the project here, in its commit.

    Raises:
        UsageError: There is no such file here, or it is in no commit.
        NotReproducibleError: The lock names a file outside of any project, or one in a release.
    """
    project = find_project(given or Path("recipe.yaml"))
    path = given or _named_by_lock(release, project)
    _refuse_inside_release(path, release)
    source = git.committed(project, path)
    shown = printable(os.path.relpath(path))
    if source is None:
        if given is None:
            raise UsageError(
                f"{shown} is in no commit of the project here, so anybody may have put it there",
                where=release.about["lock"],
                fix=f"commit it, or look at it and name it: --recipe {shown}",
            )
        return OwnRecipe(path, f"{shown}, which is in no commit")
    changed = ", changed in the working tree" if source.changed else ""
    return OwnRecipe(path, f"{shown} of commit {source.commit[:12]}{changed}")


def _named_by_lock(release: Released, project: Path) -> Path:
    name = release.lock.recipe
    named = PurePosixPath(name)
    if not named.parts or named.is_absolute() or ".." in named.parts or "\0" in name:
        raise NotReproducibleError(
            f"the lock says that the recipe is {name!a}, which is no path inside a project",
            where=release.about["lock"],
            fix=_NAME_IT,
        )
    path = project / named
    if not path.is_file():
        raise UsageError(
            f"there is no {printable(name)} in the project here",
            where=printable(str(path)),
            fix="go to the project of the release, or name the recipe: --recipe RECIPE.yaml",
        )
    if not path.resolve().is_relative_to(project.resolve()):
        raise NotReproducibleError(
            f"{printable(name)} is a link that leads out of the project here",
            where=printable(str(path)),
            fix=_NAME_IT,
        )
    return path


def _refuse_inside_release(path: Path, release: Released) -> None:
    """Refuse a recipe that a release brings: it would vouch for itself.

    Raises:
        NotReproducibleError: It is in one.
    """
    for each in (Path(os.path.abspath(path)), path.resolve()):  # noqa: PTH100 - keeps links
        for folder in each.parents:
            in_this = folder == release.folder.resolve()
            if in_this or all((folder / name).exists() for name in (RELEASE_FILE, SUMS_FILE)):
                raise NotReproducibleError(
                    f"{printable(os.path.relpath(path))} is part of a release; a release that is built "
                    "from its own files proves nothing",
                    where=release.about["lock"],
                    fix=_NAME_IT,
                )
