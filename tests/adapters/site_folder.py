"""A folder of packages that tests install into as pip does: files, a dist-info with a RECORD."""

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path


class SiteFolder:
    """One.

    Args:
        folder: It; the name ends in `site-packages`, as interpreters expect.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder

    def install(
        self,
        name: str,
        version: str,
        files: Mapping[str, str],
        *,
        needs: str = "",
        entry_points: str = "",
        record: bool = True,
    ) -> None:
        """Install a distribution, in place of an older version of it."""
        name = name.replace("-", "_")
        for old in self.folder.glob(f"{name}-*.*-info"):
            for file in old.iterdir():
                file.unlink()
            old.rmdir()
        info = f"{name}-{version}.{'dist-info' if record else 'egg-info'}"
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        metadata += f"Requires-Dist: {needs}\n" if needs else ""
        every = {**files, f"{info}/{'METADATA' if record else 'PKG-INFO'}": metadata}
        if entry_points:
            every[f"{info}/entry_points.txt"] = entry_points
        rows = []
        for path, text in every.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
            sha = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
            rows.append(f"{path},sha256={sha.decode().rstrip('=')},{len(text)}\n")
        if record:
            (self.folder / info / "RECORD").write_text("".join(rows) + f"{info}/RECORD,,\n")
