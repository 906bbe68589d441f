"""Write a wheel, the same bytes for the same files; and unpack one, file by file against its RECORD.

Source: the Python packaging specification "Binary distribution format".
"""

import base64
import csv
import hashlib
import io
import shutil
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from onnxbuild.core.file_names import check_file_names
from onnxbuild.onnxkit.programs.archives import stored_members

_FIRST_DAY = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a ZIP file can say."""

_CHUNK_BYTES = 1 << 20
_LARGE_BYTES = 1 << 31
_MODE = 0o100644 << 16
_DIST_INFO = ".dist-info"
RECORD, TOP_LEVEL = "RECORD", "top_level.txt"


class WheelError(ValueError):
    """A wheel that is not what its RECORD says, or is not the only one."""


def write_wheel(path: Path, info: str, files: Mapping[str, Path | bytes]) -> None:
    """Write a wheel: members sorted, metadata last, without compression, whose bytes differ by version.

    Args:
        info: Folder of its metadata in it.
        files: Name in the wheel -> file, or content.
    """
    rows: list[tuple[str, str, str]] = []
    names = sorted(files, key=lambda name: (name.startswith(f"{info}/"), name))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name in names:
            source = files[name]
            if isinstance(source, bytes):
                digest, size = _added(archive, name, io.BytesIO(source), len(source))
            else:
                with source.open("rb") as opened:
                    digest, size = _added(archive, name, opened, source.stat().st_size)
            rows.append((name, f"sha256={digest}", str(size)))
        record = f"{info}/{RECORD}"
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([*rows, (record, "", "")])
        content = text.getvalue().encode()
        _added(archive, record, io.BytesIO(content), len(content))


def unpack_wheel(path: Path, folder: Path) -> None:
    """Unpack a wheel, as an installer does.

    Args:
        folder: Where to; what is imported from there is the wheel's.

    Raises:
        WheelError: It is no wheel, or a member is not as its RECORD says, not in it, or not there.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            names = _names(archive, path)
            records = [n for n in names if n.endswith(f"{_DIST_INFO}/{RECORD}")]
            if len(records) != 1:
                raise WheelError(f"{path.name} has no RECORD of its own")
            rows = list(csv.reader(archive.read(records[0]).decode().splitlines()))
            wanted = {name: said for name, *said in filter(None, rows)}
            differing = set(names) ^ set(wanted)
            if differing or len(rows) != len(wanted):
                raise WheelError(f"{path.name}: RECORD and members differ: {sorted(differing)}")
            for name in names:
                _unpack(archive, name, folder, () if name == records[0] else wanted[name])
    except (zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise WheelError(f"{path.name} is no wheel: {error}") from error


def digests_in(path: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, sha256) of each file in a wheel, read from it.

    Raises:
        WheelError: It is no wheel, or has a file twice.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            for name in _names(archive, path):
                digest = hashlib.sha256()
                with archive.open(name) as file:
                    while chunk := file.read(_CHUNK_BYTES):
                        digest.update(chunk)
                yield name, digest.hexdigest()
    except zipfile.BadZipFile as error:
        raise WheelError(f"{path.name} is no wheel: {error}") from error


def only_wheel(folder: Path) -> Path:
    """Return the wheel in a package's folder.

    Raises:
        WheelError: There is none, or there are several.
    """
    found = sorted(folder.glob("*.whl"))
    if len(found) != 1:
        names = ", ".join(each.name for each in found) or "none"
        raise WheelError(f"a package has one wheel; {folder.name} has {names}")
    return found[0]


def top_package(path: Path) -> str:
    """Return what Python imports of a wheel of one package.

    Raises:
        WheelError: It does not say so.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            (name,) = (n for n in _names(archive, path) if n.endswith(f"{_DIST_INFO}/{TOP_LEVEL}"))
            (package,) = archive.read(name).decode().split()
    except (zipfile.BadZipFile, ValueError) as error:
        raise WheelError(f"{path.name} does not name one package: {error}") from error
    return package


def _names(archive: zipfile.ZipFile, path: Path) -> list[str]:
    """Return the names in a wheel.

    Raises:
        WheelError: It is not as `write_wheel` writes one: a file is there twice, compressed, or named for another folder.
    """
    try:
        names = [each.filename for each in stored_members(archive)]
        check_file_names(names)
    except ValueError as error:
        raise WheelError(f"{path.name} is no wheel of onnxbuild: {error}") from error
    return names


def _unpack(
    archive: zipfile.ZipFile, name: str, folder: Path, wanted: tuple[str, ...] | list[str]
) -> None:
    target = folder / name
    target.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(name) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, _CHUNK_BYTES)
    if not wanted:
        return
    with target.open("rb") as file:
        found = _encoded(hashlib.file_digest(file, "sha256").digest())
    if [f"sha256={found}", str(target.stat().st_size)] != list(wanted):
        raise WheelError(f"{name} is not what RECORD says")


def _added(archive: zipfile.ZipFile, name: str, source: IO[bytes], size: int) -> tuple[str, int]:
    """Add a member; (digest as RECORD has it, bytes)."""
    member = zipfile.ZipInfo(name, _FIRST_DAY)
    member.external_attr, member.create_system = _MODE, 3
    digest, written = hashlib.sha256(), 0
    with archive.open(member, "w", force_zip64=size >= _LARGE_BYTES) as target:
        while chunk := source.read(_CHUNK_BYTES):
            digest.update(chunk)
            written += len(chunk)
            target.write(chunk)
    return _encoded(digest.digest()), written


def _encoded(digest: bytes) -> str:
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
