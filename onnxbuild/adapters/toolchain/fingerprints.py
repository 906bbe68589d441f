"""The state of files, import folders and installed packages, as keys see it."""

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from onnxbuild.adapters import machine
from onnxbuild.adapters.disk.statcache import StatCache, kind_of, settled
from onnxbuild.adapters.toolchain.accelerator import gpu_digest
from onnxbuild.adapters.toolchain.distributions import Distributions
from onnxbuild.adapters.toolchain.environments import Environments
from onnxbuild.adapters.toolchain.import_path import ImportPath
from onnxbuild.adapters.toolchain.import_variables import shell_python_path
from onnxbuild.adapters.toolchain.importable import ENTRIES_TAG, Importable, entries_of
from onnxbuild.adapters.toolchain.installed_state import (
    PluginCode,
    copied_digest,
    devices_digest,
    entries_on_path,
    entry_points_digest,
    found_on_path,
    installed_entries,
    names_digest,
    packages_digest,
    parts_digest,
    plugin_digest,
)
from onnxbuild.adapters.toolchain.path_names import PathNames
from onnxbuild.adapters.toolchain.source_digest import SOURCE_TAG, source_digest
from onnxbuild.adapters.toolchain.step_environment import program_folders
from onnxbuild.adapters.toolchain.tools import is_tool, tool_digest, tool_folder
from onnxbuild.core.action import NO_FILE, NOT_INSTALLED, Action, Listing, Observed
from onnxbuild.core.environment import BUILT_IN, Environment, Interpreter, split_package
from onnxbuild.core.errors import StepError
from onnxbuild.core.places import HOME, place_name, real_path
from onnxbuild.core.ports import Missing
from onnxbuild.core.step import (
    COMPILER,
    COMPILERS,
    COPIED,
    DEVICES,
    ENTRY_POINTS,
    GPU,
    HEADERS,
    PACKAGES,
    PARTS,
    PLUGIN,
    PROGRAM,
    START_UP,
)
from onnxbuild.not_inputs import is_no_input
from onnxbuild.own_folder import OWN_FOLDER


def missing_member(name: str, programs: Iterable[str], extra: str = "") -> Missing:
    """Name a missing member of a toolchain, and what to do.

    Args:
        name: As in a kind's `toolchain`.
        programs: Folders that steps find programs in.
        extra: The optional extra of this program that brings a package, with the others that the same
            steps need; empty where none does.
    """
    if name == COMPILER:
        return Missing(
            f"a C++ compiler; there is no {' and no '.join(COMPILERS)} in {', '.join(programs)}",
            fix="install one (`apt-get install g++`), or leave out what needs it",
        )
    if name == GPU:
        return Missing(
            "an NVIDIA GPU with its driver, and TensorRT (libnvinfer): one of them is not on this "
            "machine",
            fix="run `onnxbuild doctor` to see which, or leave out what needs it",
        )
    if name == HEADERS:
        return Missing(
            "ONNX Runtime's C++ headers, which are not here",
            fix="install libonnxruntime-dev, or `export ORT_INCLUDE_DIR=FOLDER`",
        )
    if name.startswith(PROGRAM):
        program = name[len(PROGRAM) : -1]
        what = f"the program '{program}'; there is none in {', '.join(programs)}"
        return Missing(what, fix=f"install it (`apt-get install {program}`)")
    fix = f"pip install 'onnxbuild[{extra}]'" if extra else f"pip install {name}"
    return Missing(f"the package '{name}', which is not installed", fix=fix)


class MachinePlaces:
    """Paths of the folders that every project's records may name.

    Args:
        import_path: What else modules are imported from.
    """

    def __init__(self, distributions: Distributions, import_path: ImportPath) -> None:
        self._distributions = distributions
        self._import_path = import_path
        self._folders: dict[str, str] | None = None

    def folders(self) -> Mapping[str, str]:
        """Name (see core.places) -> absolute folder."""
        if self._folders is None:
            editables = self._distributions.editables()
            projects = tuple(f"{path}/" for path in editables.values())
            self._folders = {
                name: folder
                for name, folder in self._import_path.places().items()
                if not f"{folder}/".startswith(projects)
            }
            self._folders |= {place_name(f"editable {n}"): path for n, path in editables.items()}
            self._folders[HOME] = os.path.abspath(os.path.expanduser("~"))
        return self._folders


SITE_FOLDERS = "<installed>"  # stands for all folders of installed packages, in records
IMPORT_PATH = "<import path>"  # all folders that the interpreter adds to it when it starts


class DiskFingerprints:
    """Fingerprints of real files.

    Args:
        project: Relative paths start here.
        stats: Digests by stat identity.
        programs: Folders that steps find programs in.
        extra_of: Package -> the optional extra of this program that brings it; empty where none does.
        plugins: Gives those that are there.

    Attributes:
        environments: Those of targets that have one of their own.
    """

    def __init__(
        self,
        project: Path,
        stats: StatCache,
        distributions: Distributions,
        programs: Sequence[str] = program_folders(),
        *,
        extra_of: Callable[[str], str] = lambda _: "",
        plugins: Callable[[], Iterable[PluginCode]] = tuple,
    ) -> None:
        self._project = str(project)
        self._stats = stats
        self._distributions = distributions
        self._programs, self._extra_of = programs, extra_of
        self._plugins = plugins
        self._import_path = ImportPath(
            distributions.folders, shell_python_path(os.environ), stats.look
        )
        self._places = MachinePlaces(distributions, self._import_path)
        self._host: Mapping[str, str] | None = None
        self._drivers: Mapping[str, str] | None = None
        self._installed_now: dict[str, str | None] = {}
        self.environments = Environments(stats, self.absolute)
        self._listed: dict[str, tuple[str, Importable]] = {}

    def places(self) -> Mapping[str, str]:
        """Folders of this machine that records may name (see core.places)."""
        return self._places.folders()

    def absolute(self, path: str) -> str:
        """Return where a path is that records have (see core.places)."""
        if path.startswith("<"):
            path = real_path(path, {**self._places.folders(), BUILT_IN: OWN_FOLDER})
        return os.path.join(self._project, path)

    def file(self, path: str) -> str | None:
        """sha256 of a file's bytes, of a folder's entries if `path` ends in `/`; None if neither."""
        if path == f"{SITE_FOLDERS}/":
            for site in self._distributions.folders:
                self._stats.look(site)
            return names_digest(self._distributions.folders)
        if path.endswith("/"):
            return self._stats.digest(self.absolute(path).rstrip("/"), "list ", list_digest)
        return self._stats.digest(self.absolute(path))

    def source(self, path: str) -> str | None:
        """sha256 of a Python file's syntax tree, of its bytes if it does not parse."""
        return self._stats.digest(self.absolute(path), SOURCE_TAG, source_digest)

    def listing(self, folder: str, names: Sequence[str]) -> Listing:
        """Return which entries of `folder` could be one of the modules `names`."""
        if folder == IMPORT_PATH:
            folders = self._import_path.folders()
            for each in folders:
                if each.folder:
                    self._stats.look(each.folder)
            return Listing(tuple(names), found_on_path(names, entries_on_path(folders)))
        if folder == SITE_FOLDERS:
            return Listing(tuple(names), self._installed(names))
        absolute = self.absolute(folder)
        now, looked_ns = self._stats.identity_now(absolute), time.time_ns()
        known = self._listed.get(absolute)
        if known is None or known[0] != now:
            known = now, Importable(entries_of(absolute))
            if settled(now, looked_ns):
                self._listed[absolute] = known
        self._stats.use(absolute, ENTRIES_TAG, known[1].digest)
        return Listing(tuple(names), known[1].of(names))

    def link(self, path: str) -> str | None:
        """Return where a symbolic link points, as records have it; None if it is none."""
        absolute = self.absolute(path)
        self._stats.look(absolute)
        self._stats.look(os.path.dirname(absolute))  # it changes whenever the link does
        try:
            target = os.readlink(absolute)
        except OSError:
            return None
        names = PathNames(Path(self._project), self._places.folders())
        return names.shown(target) if os.path.isabs(target) else target

    def existence(self, path: str) -> str:
        """Return the kind of a path: `file`, `folder`, `other` or `absent`."""
        absolute = self.absolute(path)
        self._stats.look(absolute)
        return kind_of(absolute)

    def _installed(self, names: Sequence[str]) -> tuple[str, ...]:
        parents = {name.rpartition(".")[0].replace(".", "/") for name in names}
        for site in self._distributions.folders:
            for parent in {"", *parents}:
                self._stats.look(os.path.join(site, parent).rstrip("/"))
        return installed_entries(names, self._distributions.folders)

    def distribution(self, name: str) -> str | None:
        """Digest of an installed distribution, of a tool or GPU; None if it is not there.

        Looked at once, until `still` asks for a fresh look.
        """
        if name not in self._installed_now:
            self._installed_now[name] = self._looked_up(name)
        return self._installed_now[name]

    def folder(self, name: str) -> str | None:
        """Return where a member of a toolchain is, if steps get its path; see core.ports."""
        return tool_folder(name, self._stats)

    def missing(self, name: str) -> Missing:
        """Return what a step lacks where `distribution` finds nothing; see core.ports."""
        return missing_member(name, self._programs, self._extra_of(name))

    def _looked_up(self, name: str) -> str | None:
        if is_tool(name):
            return tool_digest(name, self._stats, self._programs)
        if name == GPU:
            return gpu_digest(self._stats.digest, self._distributions.folders)
        if name.startswith("<"):
            return self._state(name)
        elsewhere = split_package(name)
        if elsewhere is None:
            return self._distributions.digest(name)
        try:
            return self.environments.digest(*elsewhere)
        except StepError:
            return None

    def _state(self, name: str) -> str | None:
        """Return what one of the names in core.step stands for, as three words; None for an unknown name."""
        if name == DEVICES:
            return devices_digest(self.drivers(), os.environ)
        if name == PACKAGES:
            return packages_digest(self._distributions)
        if name == START_UP:
            return self._import_path.start_up(self._places.folders())
        if name.startswith(ENTRY_POINTS):
            group = name[len(ENTRY_POINTS) : -1]
            return entry_points_digest(group, self._distributions, self._stats)
        if name.startswith(PARTS):
            folder = name[len(PARTS) : -1]
            for site in self._distributions.folders:
                self._stats.look(os.path.join(site, folder))
            return parts_digest(folder, self._distributions)
        if name.startswith(PLUGIN):
            return plugin_digest(name[len(PLUGIN) : -1], self._plugins(), self._stats)
        copied = name[len(COPIED) : -1] if name.startswith(COPIED) else ""
        return copied_digest(copied, self._distributions, self._stats) if copied else None

    def environment(self, environment: Environment, where: str) -> Interpreter:
        """Another environment as it is now; see core.ports."""
        return self.environments.look(environment, where)

    def python(self) -> str:
        """The Python build."""
        return machine.python_build()

    def host(self) -> Mapping[str, str]:
        """Return the properties of this machine that can change numbers."""
        if self._host is None:
            self._host = machine.host_class()
        return self._host

    def drivers(self) -> Mapping[str, str]:
        """Return the properties of this machine that decide which execution providers load."""
        if self._drivers is None:
            self._drivers = machine.driver_facts()
        return self._drivers

    def still(self, action: Action, observed: Observed) -> bool:
        """Look again; return whether all files and packages of both are now as they say."""
        self._installed_now.clear()
        self.environments.forget()

        def real(path: str) -> str:
            return real_path(path, action.outside)

        return (
            all(self.file(real(path)) == sha for path, sha in action.files.items())
            and all(self.source(real(path)) == sha for path, sha in observed.sources.items())
            and all(
                (self.file(real(path)) or NO_FILE) == sha for path, sha in observed.data.items()
            )
            and all(
                (self.distribution(name) or NOT_INSTALLED) == sha
                for name, sha in action.toolchain.items()
                if name != "python"
            )
            and all(
                (self.distribution(name) or NOT_INSTALLED) == sha
                for name, sha in observed.distributions.items()
            )
            and all(
                self.listing(real(folder), listing.names) == listing
                for folder, listing in observed.listings.items()
            )
            and all(self.link(real(path)) == target for path, target in observed.links.items())
            and all(self.existence(real(path)) == was for path, was in observed.existence.items())
        )


def list_digest(folder: str) -> str | None:
    """sha256 of the sorted names in a folder that are inputs; None if it can't be listed."""
    try:
        with os.scandir(folder) as found:
            names = sorted(entry.name for entry in found if not is_no_input(entry))
    except OSError:
        return None
    return hashlib.sha256("\0".join(names).encode("utf-8", "surrogateescape")).hexdigest()
