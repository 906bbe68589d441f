"""A plug-in: what a distribution, or a file of the project, adds to this package's own features."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import Any

from onnxbuild.core.entrypoint import Entrypoint
from onnxbuild.core.errors import PluginError
from onnxbuild.core.places import inside_name
from onnxbuild.core.provider import Provider
from onnxbuild.core.step import PLUGIN, StepKind
from onnxbuild.expansion.feature import (
    ArtifactFormat,
    Feature,
    Frontend,
    Mode,
    ProgramFormat,
    SourceFormat,
)
from onnxbuild.expansion.package_format import PackageFormat


@dataclass(frozen=True, slots=True)
class Plugin:
    """One distribution, or one file of the project.

    Attributes:
        name: The distribution's, normalized; of a project's own, the file relative to the root.
        version: The distribution's; empty for a project's own.
        file: Where it is declared, absolute: the module of the entry point, or the project's file.
        features: What a recipe may ask for.
        providers: Execution providers.
        files: The files of its code, absolute; when one changes, so may all that it makes.
        folders: The folders that these were found in, where a new file counts, too.
        fault: Why it is left out; None if it is sound.
    """

    name: str
    version: str
    file: str
    features: tuple[Feature, ...] = ()
    providers: tuple[Provider, ...] = ()
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    fault: PluginError | None = None

    @property
    def of_project(self) -> bool:
        """Whether it is a file of the project."""
        return not self.version

    @property
    def label(self) -> str:
        """Its name and version, for messages."""
        return f"{self.name} {self.version}".rstrip()

    @property
    def mend(self) -> str:
        """Advice on a fault of the plug-in."""
        return mend_of(self.name, of_project=self.of_project)


def mend_of(name: str, *, of_project: bool) -> str:
    """Return what to do about a faulty plug-in.

    Args:
        of_project: Whether it is a file of the project.
    """
    if of_project:
        return f"mend {name}, or take it out of `plugins` in pyproject.toml"
    return f"mend it, or remove it: pip uninstall {name}"


def code_names(plugin: Plugin) -> tuple[str, ...]:
    """Return what stands for a distribution's code in the toolchain of a step that depends on it."""
    return (plugin.name, f"{PLUGIN}{plugin.name}>")


def kind_of_plugin(kind: StepKind, plugin: Plugin) -> StepKind:
    """Return a step kind with its plug-in's code among all that decides its output.

    A distribution counts by the content of its files. A file of the project is treated as a model's code
    is: it runs in the fence, and counts with all that it is seen to import and open.
    """
    if not plugin.of_project:
        return replace(kind, toolchain=(*kind.toolchain, *code_names(plugin)))
    return replace(kind, user_code=True, entrypoints=_with_file(kind.entrypoints, plugin.name))


def _with_file(
    entrypoints: Callable[[Any], tuple[Entrypoint, ...]], file: str
) -> Callable[[Any], tuple[Entrypoint, ...]]:
    folder = inside_name(PurePosixPath(file).parent.as_posix())
    own = Entrypoint(f"{inside_name(file)}:", roots=tuple(dict.fromkeys((folder, "."))))
    return lambda params: (own, *entrypoints(params))


def family_of(feature: Feature) -> str:
    """Return what a feature is, in which its name is unique: `mode`, `format`, ..."""
    if isinstance(feature, (ArtifactFormat, PackageFormat)):
        return "format"  # each is a folder VARIANT-NAME
    families = (
        (Frontend, "frontend"),
        (SourceFormat, "model source"),
        (Mode, "mode"),
        (ProgramFormat, "program format"),
    )
    return next((name for family, name in families if isinstance(feature, family)), "feature")
