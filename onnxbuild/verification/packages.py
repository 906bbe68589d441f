"""Each package of a release by itself: its checksums, and that it holds the model of its bundle."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from onnxbuild.catalog import PACKAGE_FORMATS
from onnxbuild.onnxkit.bundles.manifest import SUMS_FILE, Manifest
from onnxbuild.release_format.bundles import bundles_of, manifest_in
from onnxbuild.release_format.checksums import ReleaseFault
from onnxbuild.release_format.forms import following
from onnxbuild.release_format.layout import MANIFEST
from onnxbuild.release_format.package_records import package_records
from onnxbuild.release_format.released import Released


def check_packages(release: Released) -> Iterator[ReleaseFault]:
    """Every package against its own checksums and the bundle that it is made of.

    The lock's digests cover the same files: what is found here is a lock that was forged, too.
    """
    bundles = bundles_of(release.about)
    for _, entry in package_records(release.about):
        folder = entry["folder"]
        with following(folder):
            if _has_sums(release, entry):
                yield from check_own_sums(release, folder)
            of = bundles[_held(release, entry, bundles)]
            manifest = manifest_in(of, release.read)
            yield from _check_model(release, entry, f"{of['bundle']}/{MANIFEST}", manifest)


def _held(release: Released, entry: Mapping[str, Any], bundles: Collection[str]) -> str:
    """The bundle whose model a package holds: the one that it is of, or, of a pipeline in parts, its variant."""
    of, form = str(entry["of"]), PACKAGE_FORMATS.get(entry["format"])
    if form is None or form.is_cut is None or not form.is_cut(release.folder / entry["folder"]):
        return of
    return max((name for name in bundles if of.startswith(f"{name}-")), key=len, default=of)


def _has_sums(release: Released, entry: Mapping[str, Any]) -> bool:
    """Whether its format promises sums; of a plug-in's format that is not at hand, whether they are there."""
    form = PACKAGE_FORMATS.get(entry["format"])
    return form.has_sums if form else f"{entry['folder']}/{SUMS_FILE}" in release.files


def check_own_sums(release: Released, folder: str) -> Iterator[ReleaseFault]:
    """The SHA256SUMS of a bundle or package against the files next to it."""
    place, inside = f"{folder}/{SUMS_FILE}", f"{folder}/"
    lines = (
        f"{digest.sha256}  {path.removeprefix(inside)}\n"
        for path, digest in sorted(release.files.items())
        if path.startswith(inside) and path != place
    )
    if release.read(place).decode() != "".join(lines):
        yield ReleaseFault(place, "does not name the files next to it")


def _check_model(
    release: Released, entry: Mapping[str, Any], manifest_file: str, manifest: Manifest
) -> Iterator[ReleaseFault]:
    """Whether the bundle's model is in a package byte for byte, where its format promises that."""
    form = PACKAGE_FORMATS.get(entry["format"])
    if form is None or not form.has_model(release.folder / entry["folder"]):
        return
    inside = f"{entry['folder']}/"
    held = {each.sha256 for path, each in release.files.items() if path.startswith(inside)}
    held.update(form.archived(release.folder / entry["folder"]))
    if manifest.files[manifest.file].sha256 not in held:
        what = f"does not hold the model that {manifest_file} names, or its bytes differ"
        yield ReleaseFault(entry["folder"], what)
