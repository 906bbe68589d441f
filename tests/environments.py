"""Other environments for tests: real ones, which find this one's packages by a line in a file."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

INSTALLED = sysconfig.get_paths()["purelib"]


def make_venv(folder: Path, *paths: Path | str) -> Path:
    """A virtual environment without pip, with folders on its path; gives its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "tests.pth").write_text("".join(f"{each}\n" for each in paths))
    return folder / "bin" / "python"


def write_distribution(site: Path, name: str, version: str, needs: tuple[str, ...] = ()) -> None:
    """The metadata of an installed distribution."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    lines = [f"Requires-Dist: {each}\n" for each in needs]
    text = (
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{''.join(lines)}\nAbout it.\n"
    )
    (info / "METADATA").write_text(text)
    (info / "RECORD").write_text(f"{name}/__init__.py,sha256={version},1\n")


def write_wheel(folder: Path, name: str, needs: tuple[str, ...] = (), content: str = "") -> None:
    """Version 1.0 of a distribution that holds NAME.pth, whose content is a folder to be found."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-1.0.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
    metadata += "".join(f"Requires-Dist: {each}\n" for each in needs)
    files = {
        f"{name}.pth": f"{content}\n",
        f"{info}/METADATA": metadata,
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{each},,\n" for each in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(path, text)
