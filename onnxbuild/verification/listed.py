"""Every file of a release is named by it: by release.json, by a bundle's manifest, by a list of points."""

from collections.abc import Iterator

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.reference_files import POINTS_FILE, UNUSUAL, read_points
from onnxbuild.release_format.bundles import bundles_of
from onnxbuild.release_format.checksums import ReleaseFault
from onnxbuild.release_format.layout import (
    BOM_FILE,
    PROVENANCE_FILE,
    README_FILE,
    RELEASE_FILE,
    RESOLVED_FILE,
    SIGNATURES,
    SUMS_FILE,
)
from onnxbuild.release_format.package_records import package_records
from onnxbuild.release_format.released import Released

_ALWAYS = frozenset(
    {
        RELEASE_FILE, README_FILE, PROVENANCE_FILE, BOM_FILE, RESOLVED_FILE, SUMS_FILE, *SIGNATURES,
    }
)  # fmt: skip


def check_listed(release: Released) -> Iterator[ReleaseFault]:
    """Files that nothing names; a bundle's contents are held to its manifest by `check_bundles`."""
    about = release.about
    named = {*_ALWAYS, about["recipe"], about["lock"], *about["bases"], *about["reports"]}
    records = bundles_of(about).values()
    goldens = {each["golden"] for each in records}
    unusual = {
        f"{each}/{UNUSUAL}" for each in goldens
    }  # extreme rows, where the reference has some
    there = {each for each in unusual if f"{each}/{POINTS_FILE}" in release.files}
    for golden in sorted(goldens | there):
        try:
            points = read_points(release.folder / golden)
        except StepError as error:
            yield ReleaseFault(
                f"{golden}/{POINTS_FILE}", f"is no list of golden points: {error.what}"
            )
            continue
        named |= {f"{golden}/{POINTS_FILE}", *(f"{golden}/{each.file}" for each in points)}
    bundles = tuple(f"{each['bundle']}/" for each in records)
    packages = tuple(f"{each['folder']}/" for _, each in package_records(about))
    for path in release.files:
        if path not in named and not path.startswith((*bundles, *packages)):
            yield ReleaseFault(path, "is named neither by release.json nor by a manifest")
