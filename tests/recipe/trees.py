"""Trees of small files for patterns to match."""

from pathlib import Path


def make_files(folder: Path, *names: str) -> None:
    """Make files, and the folders that they are in."""
    for name in names:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1")
