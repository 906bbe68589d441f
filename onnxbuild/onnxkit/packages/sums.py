"""A package's files against its SHA256SUMS."""

from __future__ import annotations

from pathlib import Path

from onnxbuild.onnxkit.bundles.manifest import SUMS_FILE
from onnxbuild.onnxkit.bundles.write import described, names_below


def damage(folder: Path) -> str:
    """Return what is wrong with a package's files, by its SHA256SUMS; empty if nothing is.

    Args:
        folder: The package.
    """
    try:
        lines = (folder / SUMS_FILE).read_text(encoding="utf-8").splitlines()
        recorded = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    except (OSError, UnicodeDecodeError) as error:
        return f"{SUMS_FILE} can't be read: {error}"
    there = {name for name in names_below(folder) if name != SUMS_FILE}
    if missing := sorted(recorded.keys() - there):
        return f"{missing[0]} is missing"
    if added := sorted(there - recorded.keys()):
        return f"{added[0]} is there, and {SUMS_FILE} does not name it"
    for name, digest in recorded.items():
        if described(folder / name).sha256 != digest:
            return f"{name} is another file than the one that {SUMS_FILE} names"
    return ""
