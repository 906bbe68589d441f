"""Reference of an artifact: REGISTRY/REPOSITORY:TAG, or oci:FOLDER:TAG for a layout on disk."""

import ipaddress
import re
from dataclasses import dataclass
from pathlib import Path

from onnxbuild.core.digest import check_sha256
from onnxbuild.core.errors import UsageError
from onnxbuild.release_format.forms import printable

LAYOUT = "oci:"
_SHA256 = "sha256:"
_HOST = re.compile(r"(\[[0-9a-fA-F:]+\]|[0-9A-Za-z.-]+)(?::([0-9]{1,5}))?")
_PORT_MAX = 65_535
_REPOSITORY = re.compile(
    r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*"
)
_REPOSITORY_MAX = 255
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_FORM = (
    "write REGISTRY/REPOSITORY:TAG, like registry.example.org/team/digits:1.0.0, or oci:FOLDER:TAG"
)
_SHORT_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Reference:
    """An artifact's place.

    Attributes:
        registry: HOST or HOST:PORT; empty for a layout.
        repository: Path in the registry, or the layout's folder.
        tag: Empty where only a digest is given.
        sha256: The manifest's; empty where only a tag is given.
    """

    registry: str
    repository: str
    tag: str
    sha256: str = ""

    @property
    def is_layout(self) -> bool:
        """Whether it is a folder on disk."""
        return not self.registry

    @property
    def place(self) -> str:
        """Reference without tag and digest, as a person types it."""
        return f"{self.registry}/{self.repository}" if self.registry else f"oci:{self.repository}"

    @property
    def target(self) -> str:
        """Name of the reference in the distribution API: the digest if one is given, else the tag."""
        return f"{_SHA256}{self.sha256}" if self.sha256 else self.tag

    @property
    def folder_name(self) -> str:
        """Folder that `pull` writes by default: NAME-TAG, or NAME and the digest's first 12 digits."""
        name = (Path.cwd() / self.repository).name if self.is_layout else ""
        name = name or self.repository.rpartition("/")[2]
        return f"{name}-{self.tag or self.sha256[:_SHORT_DIGITS]}"

    @property
    def is_loopback(self) -> bool:
        """Whether the registry is on this machine, by its name."""
        host = split_host(self.registry)[0]
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.place}{tag}" + (f"@{_SHA256}{self.sha256}" if self.sha256 else "")


def parse_reference(text: str) -> Reference:
    """Return the reference that a person typed.

    Raises:
        UsageError: It is none, or it lacks a registry, a tag or a digest; no tag is assumed.
    """
    rest, at, digest = text.partition("@")
    if at and not digest.startswith(_SHA256):
        raise _refused(text, "has a digest other than sha256:...")
    sha256 = digest.removeprefix(_SHA256)
    if sha256:
        try:
            check_sha256(sha256)
        except ValueError:
            raise _refused(text, "has a digest that is not 64 lower-case hex digits") from None
    if rest.startswith(LAYOUT):
        return _layout(text, rest.removeprefix(LAYOUT), sha256)
    registry, slash, path = rest.partition("/")
    if not slash or not ("." in registry or ":" in registry or registry == "localhost"):
        what = f"'{printable(text)}' names no registry"
        raise UsageError(what, fix=f"write docker.io/{rest}" if slash else _FORM)
    repository, colon, tag = path.partition(":")
    split_host(registry)
    if not _REPOSITORY.fullmatch(repository) or len(repository) > _REPOSITORY_MAX:
        raise _refused(
            text,
            f"has the repository '{printable(repository)}'; expected lower-case letters, digits, "
            "'.', '_', '-', and '/' between names",
        )
    if colon and not _TAG.fullmatch(tag):
        raise _refused(text, f"has the tag '{printable(tag)}', which is none")
    return _with_target(Reference(registry.lower(), repository, tag, sha256))


def parse_destination(text: str) -> Reference:
    """Return the reference that a person typed to push to: one with a tag, without a digest.

    Raises:
        UsageError: It is none.
    """
    found = parse_reference(text)
    if found.sha256:
        raise UsageError("the digest follows from the contents", fix=f"write {found.place}:TAG")
    return found


def _layout(text: str, rest: str, sha256: str) -> Reference:
    folder, _, tag = rest.rpartition(":")
    if sha256 and not folder:
        folder, tag = rest, ""
    if not folder or ":" in folder or (tag and not _TAG.fullmatch(tag)):
        raise _refused(text, "is no OCI layout; expected oci:FOLDER:TAG")
    return _with_target(Reference("", str(Path(folder)), tag, sha256))


def _with_target(found: Reference) -> Reference:
    if not found.tag and not found.sha256:
        raise UsageError(f"'{found.place}' has no tag", fix=f"write {found.place}:TAG")
    return found


def split_host(registry: str) -> tuple[str, int | None]:
    """Return the host and the port of a registry; None for the scheme's own port.

    Raises:
        UsageError: It is none.
    """
    match = _HOST.fullmatch(registry)
    if match is None or (match[2] and not 0 < int(match[2]) <= _PORT_MAX):
        raise UsageError(f"'{printable(registry)}' is no registry; expected HOST or HOST:PORT")
    return match[1].strip("[]"), int(match[2]) if match[2] else None


def _refused(text: str, why: str) -> UsageError:
    return UsageError(f"'{printable(text)}' {why}", fix=_FORM)
