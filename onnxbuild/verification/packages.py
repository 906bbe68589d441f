"""Each package of a release by itself: its checksums, and that it holds the model of its bundle."""

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onnxbuild.catalog import RELEASED_FORMATS
from onnxbuild.core.errors import StepError
from onnxbuild.document.recipe_names import RecipeName
from onnxbuild.expansion.package_format import OwnModel, PackageFormat
from onnxbuild.onnxkit.ahead_of_time.artifact_file import SOURCE
from onnxbuild.onnxkit.bundles.manifest import SUMS_FILE, Manifest, graph_files, read_manifest
from onnxbuild.processes.fenced_call import call_fenced
from onnxbuild.release_format.bundles import bundles_of, manifest_in
from onnxbuild.release_format.checksums import ReleaseFault
from onnxbuild.release_format.forms import following, read_json
from onnxbuild.release_format.layout import MANIFEST
from onnxbuild.release_format.package_records import VARIANT, package_records
from onnxbuild.release_format.released import Released

_DESCRIBE_S = 120.0
"""Wall time that reading a package's own model may take."""


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
            of = bundles[_held(release, entry)]
            manifest = manifest_in(of, release.read)
            form = RELEASED_FORMATS.get(entry["format"])
            if form is None:
                continue
            own = form.own_model
            if own is not None and own.is_in(release.folder / folder):
                yield from _check_own(release, folder, own, of["bundle"], manifest)
            else:
                yield from _check_contents(release, folder, form, of["bundle"], manifest)
            yield from _check_others(release, entry, form)


def _held(release: Released, entry: Mapping[str, Any]) -> str:
    """The bundle whose model a package holds: the one that it is of, or, of a pipeline in parts, its variant.

    Raises:
        ValueError: The variant is not the one that the pipeline's name starts with.
    """
    of, form = str(entry["of"]), RELEASED_FORMATS.get(entry["format"])
    if form is None or form.is_cut is None or not form.is_cut(release.folder / entry["folder"]):
        return of
    variant = str(entry[VARIANT])
    if not of.startswith(f"{variant}-"):
        raise ValueError(f"'{of}' is no pipeline of '{variant}'")
    return variant


def _has_sums(release: Released, entry: Mapping[str, Any]) -> bool:
    """Return whether a package must have sums: by its format; if that is a missing plug-in's, by its files."""
    form = RELEASED_FORMATS.get(entry["format"])
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


def _check_contents(
    release: Released, folder: str, form: PackageFormat, bundle: str, manifest: Manifest
) -> Iterator[ReleaseFault]:
    """Check that the files that a package opens are those of its bundle, byte for byte."""
    there = {
        path.removeprefix(f"{folder}/"): digest.sha256
        for path, digest in release.files.items()
        if path.startswith(f"{folder}/")
    }
    package = release.folder / folder
    there |= form.archived(package)
    said_by = f"{bundle}/{MANIFEST}"
    for name, path in sorted(form.contents(package, manifest).items()):
        expected = release.files.get(f"{bundle}/{name}")
        if expected is not None and there.get(path) == expected.sha256:
            continue
        if name in graph_files(manifest):
            what = f"does not hold the model that {said_by} names, or its bytes differ"
            yield ReleaseFault(folder, f"{what}: {name} is opened from {path or 'no file'}")
        elif expected is None:
            yield ReleaseFault(folder, f"opens {path}, which is no file of {bundle}")
        else:
            yield ReleaseFault(folder, f"does not hold {bundle}/{name}, or its bytes differ")


def _check_others(
    release: Released, entry: Mapping[str, Any], form: PackageFormat
) -> Iterator[ReleaseFault]:
    """Check that the models of a package of several components are those of the release's bundles."""
    folder, own = entry["folder"], RecipeName.parse(entry["recipe"])
    for component, variant in form.holds(release.folder / folder).items():
        wanted = str(own.sibling(component)), variant
        named = (
            each
            for each in bundles_of(release.about).values()
            if (each["recipe"], each["variant"]) == wanted
        )
        of = next(named, None)
        if of is None:
            yield ReleaseFault(folder, f"holds {':'.join(wanted)}, which is not in the release")
        else:
            manifest = manifest_in(of, release.read)
            yield from _check_contents(release, folder, form, of["bundle"], manifest)


def _check_own(
    release: Released, folder: str, model: OwnModel, bundle: str, manifest: Manifest
) -> Iterator[ReleaseFault]:
    """A model that a format makes itself: its manifest is of the same variant and made of its model, and names the files."""
    place = f"{folder}/{MANIFEST}"
    own = read_manifest(read_json(release.read(place)))
    if (own.name, own.variant) != (manifest.name, manifest.variant):
        what = f"is of {own.name}:{own.variant}, not of {manifest.name}:{manifest.variant}"
        yield ReleaseFault(place, what)
    if (own.inputs, own.outputs) != (manifest.inputs, manifest.outputs):
        yield ReleaseFault(place, "has other inputs or outputs than the variant")
    for name in (own.file, *graph_files(own)):
        path = f"{folder}/{name}"
        if name not in own.files or release.files.get(path) != own.files[name]:
            yield ReleaseFault(path, f"is not the file that {place} names")
            return
    files = {name: release.files.get(f"{bundle}/{name}") for name in graph_files(manifest)}
    source = {name: None if each is None else each.sha256 for name, each in files.items()}
    if (own.facts or {}).get(SOURCE) != source:
        yield ReleaseFault(place, f"is of a model that was made of another one than {bundle}'s")
    if model.describes:
        yield from _check_described(release, folder, model, own, manifest)


def _check_described(
    release: Released, folder: str, model: OwnModel, own: Manifest, manifest: Manifest
) -> Iterator[ReleaseFault]:
    """Check what a package's own model says of itself, against the package and the variant."""
    package = (release.folder / folder).absolute()
    path = package / own.file
    with tempfile.TemporaryDirectory(prefix="onnxbuild-described-") as scratch:
        try:
            found = call_fenced(
                model.describes,
                str(path),
                readable=(path,),
                scratch=Path(scratch),
                where=folder,
                timeout_s=_DESCRIBE_S,
            )
        except StepError as error:
            yield ReleaseFault(f"{folder}/{own.file}", f"can't be read: {error.what}")
            return
    yield from (ReleaseFault(folder, each) for each in model.faults(package, manifest, found))
