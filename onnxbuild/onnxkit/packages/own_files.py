"""Check a package of plain files: its checksums, whose it is, its golden points."""

from __future__ import annotations

import json
from pathlib import Path

from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.write import names_below
from onnxbuild.onnxkit.packages.golden import GOLDEN, write_plain_points
from onnxbuild.onnxkit.packages.sums import damage


class PackageError(ValueError):
    """A package that is not what it says."""


def owner_of(manifest: Path) -> tuple[str, str]:
    """Return (recipe, variant) of a package.

    Args:
        manifest: Its manifest.json.

    Raises:
        PackageError: It is none.
    """
    try:
        content = json.loads(manifest.read_text(encoding="utf-8"))
        return str(content["name"]), str(content["variant"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise PackageError(f"it has no {manifest.name} that names its variant") from error


def check_package(
    folder: Path,
    *,
    manifest: str,
    recipe: str,
    variant: str,
    reference: Path,
    tolerances: VariantTolerances,
    scratch: Path,
) -> frozenset[str]:
    """Check a package's files, owner and golden points; return the names of the points.

    Args:
        folder: The package's.
        manifest: Name of its manifest.json.
        recipe: The name that the manifest must have.
        variant: The same.
        reference: The artifact.
        tolerances: The variant's.
        scratch: A folder to write to.

    Raises:
        PackageError: One of these is wrong.
    """
    if wrong := damage(folder):
        raise PackageError(wrong)
    owner = owner_of(folder / manifest)
    if owner != (recipe, variant):
        raise PackageError(f"it is a package of {':'.join(owner)}, not of {recipe}:{variant}")
    expected = scratch / "expected"
    points = write_plain_points(expected, reference, tolerances)
    for name in sorted({*names_below(folder / GOLDEN), *names_below(expected)}):
        paths = (folder / GOLDEN / name, expected / name)
        if not all(each.is_file() for each in paths) or not _same(*paths):
            raise PackageError(f"{GOLDEN}/{name} is not the reference's")
    return frozenset(each["name"] for each in points)


def _same(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes()
