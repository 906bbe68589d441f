"""What a tree of a user's files may hold, each with a number in it, and how it is written."""

import base64
import hashlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.attack.law.formats import File


@dataclass(frozen=True)
class Link:
    """A symbolic link."""

    target: str


@dataclass(frozen=True)
class Distribution:
    """An installed package.

    Attributes:
        version: Its version.
        number: For {n} in its files.
        files: Path below the site folder -> text.
        record: Whether there is a RECORD.
        entry_points: The text of entry_points.txt, with {n}.
    """

    version: str
    number: int
    files: Mapping[str, str]
    record: bool = True
    entry_points: str = ""

    def __hash__(self) -> int:
        return hash((self.version, self.number))


Content = File | Link | Distribution
Tree = dict[str, Content]
"""Path below `project/`, `site/` (a distribution's name) or `shared/` -> what is there."""


# --- on the disk ----------------------------------------------------------------------------------


@dataclass
class Disk:
    """Where a tree is.

    Args:
        project: The project's folder.
        site: The site folder of the interpreter.
        shared: A folder in shared memory.
    """

    project: Path
    site: Path
    shared: Path
    tree: Tree = field(default_factory=dict)

    def lay(self, wanted: Tree, *, in_silence: bool = False) -> None:
        """Make the disk hold `wanted`, and touch nothing that it holds already.

        Args:
            wanted: What there is to be.
            in_silence: Files that change keep their modification time, as some editors do it.
        """
        for path in sorted(self.tree.keys() - wanted.keys(), reverse=True):
            self._remove(path, self.tree[path])
        for path in sorted(wanted):
            before = self.tree.get(path)
            if before == wanted[path]:
                continue
            place = self.place(path)
            kept = place.stat() if in_silence and isinstance(before, File) else None
            if before is not None and not isinstance(before, type(wanted[path])):
                self._remove(path, before)
            self._write(path, wanted[path])
            if kept is not None:
                os.utime(place, ns=(kept.st_atime_ns, kept.st_mtime_ns))
        self.tree = dict(wanted)

    def place(self, path: str) -> Path:
        top, _, rest = path.partition("/")
        return getattr(self, top) / rest

    def swap(self, one: str, other: str) -> None:
        """Two files change names: each keeps its inode and its times."""
        third = self.place(one).with_name("third")
        self.place(one).rename(third)
        self.place(other).rename(self.place(one))
        third.rename(self.place(other))
        self.tree[one], self.tree[other] = self.tree[other], self.tree[one]

    def _write(self, path: str, content: Content) -> None:
        place = self.place(path)
        if isinstance(content, Distribution):
            _uninstall(self.site, place.name)
            _install(self.site, place.name, content)
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Link):
            place.unlink(missing_ok=True)
            place.symlink_to(content.target)
        else:
            place.write_bytes(content.content())

    def _remove(self, path: str, content: Content) -> None:
        place = self.place(path)
        if isinstance(content, Distribution):
            _uninstall(self.site, place.name)
            return
        place.unlink()
        top = path.partition("/")[0]
        for folder in place.parents:
            if folder in {self.project, self.shared, self.project / "models"} or top == "site":
                break
            if any(folder.iterdir()):
                break
            folder.rmdir()


def _install(site: Path, name: str, found: Distribution) -> None:
    info = site / f"{name}-{found.version}.dist-info"
    info.mkdir()
    files = {path: text.replace("{n}", str(found.number)) for path, text in found.files.items()}
    summary = f"Summary: number {found.number}\n"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {found.version}\n{summary}"
    files[f"{info.name}/METADATA"] = metadata
    if found.entry_points:
        points = found.entry_points.replace("{n}", str(found.number))
        files[f"{info.name}/entry_points.txt"] = points
    rows = []
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
        rows.append(f"{path},sha256={digest.decode().rstrip('=')},{len(text)}\n")
    if found.record:
        (info / "RECORD").write_text("".join(rows) + f"{info.name}/RECORD,,\n")
    else:
        (info / "top_level.txt").write_text(
            "".join(sorted({p.split("/")[0] + "\n" for p in found.files}))
        )
        listed = "".join(f"{path}\n" for path in found.files)
        (info / "law-files.txt").write_text(listed)


def _uninstall(site: Path, name: str) -> None:
    for info in site.glob(f"{name}-*.dist-info"):
        record = info / "RECORD"
        listed = record if record.exists() else info / "law-files.txt"
        paths = [line.partition(",")[0] for line in listed.read_text().splitlines()]
        shutil.rmtree(info)
        for path in paths:
            (site / path).unlink(missing_ok=True)
            for folder in (site / path).parents:
                if folder == site or not folder.is_dir() or any(folder.iterdir()):
                    break
                folder.rmdir()
