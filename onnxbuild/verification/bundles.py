"""Each bundle of a release by itself: its manifest, its checksums, the form of the file that is opened."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onnxbuild import __version__
from onnxbuild.catalog import ARTIFACT_FORMATS, PROGRAM_FORMATS
from onnxbuild.core.params import from_json
from onnxbuild.onnxkit.accuracy.tolerances import VariantTolerances
from onnxbuild.onnxkit.bundles.manifest import LOADER_FILE, RUN_FILE, SUMS_FILE, Manifest
from onnxbuild.onnxkit.loaders.script import load_script, run_script
from onnxbuild.release_format.bundles import (
    BundleSection,
    manifest_in,
    section_bundles,
    section_of,
)
from onnxbuild.release_format.checksums import ReleaseFault
from onnxbuild.release_format.forms import following
from onnxbuild.release_format.layout import MANIFEST
from onnxbuild.release_format.released import Released
from onnxbuild.verification.allowed import config_faults
from onnxbuild.verification.packages import check_own_sums


def check_bundles(release: Released) -> Iterator[ReleaseFault]:
    """Every bundle against its own manifest; programs and `.ort` files against their form.

    The lock's digests cover the same files: what is found here is a lock that was forged, too. Files
    of ONNX are opened by `--run`.
    """
    for section, _, entry in section_bundles(release.about):
        place = f"{entry['bundle']}/{MANIFEST}"
        with following(place):
            manifest = manifest_in(entry, release.read)
            yield from _check_name(section, entry, manifest, place)
            yield from _check_files(release, entry["bundle"], manifest, place)
            yield from check_own_sums(release, entry["bundle"])
            yield from (ReleaseFault(place, fault) for fault in config_faults(manifest))
            for verdict in manifest.validation.values():
                from_json(VariantTolerances, verdict.tolerances)
            yield from _check_loader(release, entry["bundle"], manifest)
            opened = f"{entry['bundle']}/{manifest.file}"
            if opened not in release.files:
                yield ReleaseFault(place, f"names {manifest.file!r}, which is not there")
                continue
            fault = _file_fault(manifest.kind, release.folder / opened)
            if fault:
                yield ReleaseFault(opened, f"is no {manifest.kind} file: {fault}")


def _file_fault(kind: str, path: Path) -> str:
    """Return what is wrong with a model's file, as the feature that makes such files checks it."""
    form = PROGRAM_FORMATS.get(kind) or ARTIFACT_FORMATS.get(kind)
    return form.file_fault(path) if form else ""


def _check_name(
    section: BundleSection, entry: Mapping[str, Any], manifest: Manifest, place: str
) -> Iterator[ReleaseFault]:
    """The manifest is of the bundle that release.json names, and of a kind that its section holds."""
    if manifest.name != entry["recipe"] or manifest.bundle != entry["variant"]:
        who = f"{entry['recipe']}:{entry['variant']}"
        yield ReleaseFault(
            place, f"is of {manifest.name}:{manifest.bundle}; release.json says {who}"
        )
    elif section_of(manifest) is not section:
        yield ReleaseFault(
            place, f"is of kind {manifest.kind}, which {section.folder}/ does not hold"
        )


def _check_files(
    release: Released, bundle: str, manifest: Manifest, place: str
) -> Iterator[ReleaseFault]:
    """The manifest names every file but itself and the checksums, each with its digest."""
    named = {f"{bundle}/{name}": each for name, each in manifest.files.items()}
    own = {place, f"{bundle}/{SUMS_FILE}"}
    for path, each in named.items():
        digest = release.files.get(path)
        if digest is None:
            yield ReleaseFault(path, f"is missing: {place} names it")
        elif digest != each:
            yield ReleaseFault(path, f"is not the file that {place} names")
    for path in release.files:
        if path.startswith(f"{bundle}/") and path not in named and path not in own:
            yield ReleaseFault(path, f"is more than {place} names")


def _check_loader(release: Released, bundle: str, manifest: Manifest) -> Iterator[ReleaseFault]:
    """The README says to run load.py and run.py: they must be those that this version of onnxbuild writes."""
    if release.about["onnxbuild"] != __version__:
        return  # other versions write other scripts
    scripts = {LOADER_FILE: load_script(manifest.runtime, operators=bool(manifest.operators))}
    if manifest.decoder is not None:
        scripts[RUN_FILE] = run_script()
    for file, expected in scripts.items():
        place = f"{bundle}/{file}"
        found = release.read(place) if place in release.files else b""
        if found != expected.encode():
            yield ReleaseFault(place, f"is not the loader that onnxbuild {__version__} writes")
