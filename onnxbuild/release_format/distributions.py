"""The packages of a lock, taken apart: name, version, digest, package URL."""

from dataclasses import dataclass

from onnxbuild.core.action import NOT_INSTALLED
from onnxbuild.core.environment import INTERPRETER, NODE, split_package
from onnxbuild.core.step import COMPILER, GPU
from onnxbuild.lock.model import Lock

_HEX = 64


@dataclass(frozen=True, slots=True)
class Package:
    """One distribution, or package of npm's, that a build used.

    Attributes:
        name: As it is installed (`onnxruntime-gpu`), normalized.
        version: As it is installed, with its local part (`2.13.0+cpu`).
        record: sha256 over its RECORD, which lists a hash of every file, or over its files where
            it has none; empty if no file is known, and for npm's packages.
        index: Its package URL's type: `pypi` or `npm`.
    """

    name: str
    version: str
    record: str
    index: str = "pypi"

    @property
    def purl(self) -> str:
        """Its package URL."""
        from packageurl import PackageURL

        scope, _, name = self.name.rpartition("/")
        return PackageURL(self.index, scope or None, name, self.version).to_string()


def packages_of(lock: Lock) -> tuple[Package, ...]:
    """Return what a lock's build used, by name; a package that has two names is listed once.

    Those of targets' environments are among them: a package may be there in several versions.
    """
    found = {
        _parsed(name, digest)
        for name, digest in lock.packages.items()
        if digest != NOT_INSTALLED and not name.startswith("<") and not _is_tool(name)
    }
    return tuple(sorted(found, key=lambda each: (each.name, each.version, each.record)))


def _is_tool(name: str) -> bool:
    """Return whether a package is a compiler, a GPU, an interpreter or Node."""
    elsewhere = split_package(name)
    return name in {COMPILER, GPU} or (
        elsewhere is not None and elsewhere[0] in {INTERPRETER, NODE}
    )


def _parsed(member: str, digest: str) -> Package:
    name, version, record = digest.split(" ")
    elsewhere = split_package(member)
    index = "npm" if elsewhere is not None and elsewhere[1].npm else "pypi"
    return Package(name, version, record if len(record) == _HEX else "", index)
