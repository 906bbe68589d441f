"""Check a release: its checksums, its signature, and what it says of itself."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from onnxbuild import __version__
from onnxbuild.adapters.disk.statcache import hash_file
from onnxbuild.adapters.signing_keys import read_public_key
from onnxbuild.adapters.store.delivery import Blob
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.errors import EXIT_NOT_REPRODUCIBLE
from onnxbuild.core.step import REPORT_FILE
from onnxbuild.lock.compare import leaves
from onnxbuild.lock.text import load_strictly
from onnxbuild.release_format.archive import HashSink, write_archive
from onnxbuild.release_format.bom import bom_fault
from onnxbuild.release_format.bundles import (
    BUNDLE,
    GOLDEN,
    REPORT,
    SECTIONS,
    artifact_below,
    bundles_of,
)
from onnxbuild.release_format.checksums import Files, ReleaseFault
from onnxbuild.release_format.forms import following, read_json, resolved_bytes
from onnxbuild.release_format.layout import (
    BOM_FILE,
    PROVENANCE_FILE,
    README_FILE,
    RESOLVED_FILE,
    SIGNATURES,
    release_name,
)
from onnxbuild.release_format.package_records import PACKAGES, package_records
from onnxbuild.release_format.provenance import provenance
from onnxbuild.release_format.readme import readme
from onnxbuild.release_format.released import Released
from onnxbuild.release_format.tree import Tree, all_figures, manifests_of
from onnxbuild.verification.bundles import check_bundles
from onnxbuild.verification.contents import (
    OTHER_BYTES,
    check_artifact,
    check_bytes,
    check_json,
    hashes_of,
)
from onnxbuild.verification.listed import check_listed
from onnxbuild.verification.packages import check_packages
from onnxbuild.verification.signature import check_signatures

_OTHER_ARCHIVE = "has other bytes than the archive that a release of these files has"


@dataclass(frozen=True, slots=True)
class Checked:
    """Result of one check.

    Attributes:
        title: What was checked.
        detail: What is so, if nothing is wrong.
        faults: What is wrong; none if nothing is.
        exit_code: What the command ends with if something is wrong.
        skipped: It could not be checked; `detail` says why.
    """

    title: str
    detail: str = ""
    faults: tuple[str, ...] = ()
    exit_code: int = EXIT_NOT_REPRODUCIBLE
    skipped: bool = False


def verify_files(files: Files, key: Path | None) -> Iterator[Checked]:
    """Checksums and signature: whether the files are those that were released.

    Raises:
        UsageError: The key is none.
    """
    public_key = None if key is None else read_public_key(key)
    size = sum(digest.size_bytes for digest in files.digests.values())
    yield Checked(
        "checksums",
        f"{len(files.digests)} files, {size / 2**20:.1f} MiB, all digests match",
        _sentences(files.faults),
    )
    if not files.digests:
        return  # refused by its names or sizes: nothing was read
    if public_key is not None:
        wrong = check_signatures(files, public_key)
        yield Checked("signature", f"made with the key {key}", _sentences(wrong))
    elif any(name in files.digests for name in SIGNATURES):
        wrong = check_signatures(files, None)
        detail = "present, not checked; to check it: --key PUBLIC.pem"
        yield Checked("signature", detail, _sentences(wrong), skipped=True)
    else:
        yield Checked("signature", "the release is not signed", skipped=True)


def unproven(files: Files) -> str:
    """Return what is not shown by the checks of a release whose signature is not checked."""
    how = "not signed"
    if any(name in files.digests for name in SIGNATURES):
        how = "its signature was not checked (--key PUBLIC.pem)"
    return f"{how}, so whoever made it may have written all of it"


def verify_unchanged(files: Files) -> Iterator[Checked]:
    """See that the files are still those that were hashed; nothing where they are."""
    if changed := files.changed():
        yield Checked("checksums", faults=_sentences(changed))


def verify_contents(release: Released) -> Iterator[Checked]:
    """Check that provenance, lock, models and reports agree.

    Raises:
        NotReproducibleError: Something in it can't be followed.
    """
    checks = (
        (
            "provenance",
            f"{release.about['name']} {release.about['version']}, {_source(release.about)}",
            _check_provenance,
        ),
        ("models", f"{_counted(release.about)}, digests as in the lock", _check_artifacts),
        ("files", "each is named by release.json or a manifest", check_listed),
        ("bundles", "complete, each model in its declared format", check_bundles),
        ("packages", _packages(release.about), check_packages),
        ("resolved recipe and reports", "equal to the lock", _check_lock_copies),
        ("bill of materials", "valid, lists these files with their digests", _check_bom),
    )
    for title, detail, check in checks:
        if not detail:
            continue
        with following(title):
            faults = _sentences(check(release))
        yield Checked(title, detail, faults)
    with following(README_FILE):
        checked = _check_readme(release)
    yield checked


def _packages(about: Mapping[str, Any]) -> str:
    """List the packages, as the detail of a passed check; empty if there are none."""
    names = list(about.get(PACKAGES, ()))
    return f"{', '.join(names)}: complete, each with the model of its variant" if names else ""


def _counted(about: Mapping[str, Any]) -> str:
    """Return how many bundles of each section there are, in words."""
    counts = ((len(about[section.key]), section.one) for section in SECTIONS)
    return ", ".join(f"{n} {one}{'s' if n != 1 else ''}" for n, one in counts if n)


def verify_archive(release: Released, archive: Path) -> Checked:
    """Check that an archive is, byte for byte, the one that a release of these files has."""
    about = release.about
    sink = HashSink()
    title = release_name(about["name"], about["version"])
    write_archive(sink, title, _tree(release), about["epoch_s"])
    found = hash_file(str(archive), size_bytes=sink.size_bytes)
    faults = () if found == sink.sha256 else (_OTHER_ARCHIVE,)
    return Checked("archive", "holds these files and nothing else", faults)


def _tree(release: Released) -> Tree:
    return {name: Blob(release.folder / name, digest) for name, digest in release.files.items()}


def _check_provenance(release: Released) -> Iterator[ReleaseFault]:
    """Check the provenance: derived again from the rest of the release, it must be the same."""
    expected = provenance(release.about, release.lock, release.files)
    found = release.read(PROVENANCE_FILE)
    yield from check_json(found, PROVENANCE_FILE, expected, "the release itself implies")


def _check_readme(release: Released) -> Checked:
    """Check the page, which follows from the release, too; other versions of this program write other pages."""
    about, lock = release.about, release.lock
    if about["onnxbuild"] != __version__:
        detail = f"written by onnxbuild {about['onnxbuild']}; this is {__version__}"
        return Checked(README_FILE, detail, skipped=True)
    manifests = manifests_of(about, _tree(release))
    figures = all_figures(about, lock, manifests)
    expected = readme(about, lock, manifests, figures).encode()
    found = check_bytes(release.read(README_FILE), README_FILE, expected, "the release itself")
    return Checked(README_FILE, "equal to the page generated from this release", _sentences(found))


def _check_artifacts(release: Released) -> Iterator[ReleaseFault]:
    """Every bundle, and the golden files, against the outputs that the lock names."""
    golden: dict[str, str] = {}
    for detail in bundles_of(release.about).values():
        artifact = artifact_below(BUNDLE, detail["bundle"], release.files)
        yield from check_artifact(release.lock, detail["step"], BUNDLE, artifact, detail["bundle"])
        golden[detail["golden"]] = detail["reference"]
    for _, entry in package_records(release.about):
        output, folder = entry["output"], entry["folder"]
        artifact = artifact_below(BUNDLE, folder, release.files)
        yield from check_artifact(release.lock, entry["step"], output, artifact, folder)
    for prefix, step in golden.items():
        artifact = artifact_below(GOLDEN, prefix, release.files)
        yield from check_artifact(release.lock, step, GOLDEN, artifact, prefix)


def _check_lock_copies(release: Released) -> Iterator[ReleaseFault]:
    """Check the copies, for people, of what the lock says: recipe, reports, measurements."""
    content = release.read(RESOLVED_FILE)
    if content != resolved_bytes(release.lock):
        try:
            resolved = load_strictly(content.decode("utf-8"))
        except (ValueError, yaml.YAMLError):
            resolved = None
        places = [place for place, _, _ in leaves(resolved, release.lock.resolved)]
        for place in places:
            yield ReleaseFault(RESOLVED_FILE, f"differs from the lock at {place or 'its start'}")
        if not places:
            yield ReleaseFault(RESOLVED_FILE, OTHER_BYTES)
    for path, step in release.about["reports"].items():
        if step in release.lock.measurements:
            measured = release.lock.measurements[step]
            yield from check_json(release.read(path), path, measured, "the lock says")
        else:
            report = Artifact(REPORT, ((REPORT_FILE, release.files[path]),))
            yield from check_artifact(release.lock, step, REPORT, report, path)


def _check_bom(release: Released) -> Iterator[ReleaseFault]:
    """Check the bill of materials: its schema, and the digest of every file that it names."""
    content = release.read(BOM_FILE)
    try:
        bill = read_json(content)
    except ValueError as error:
        yield ReleaseFault(BOM_FILE, f"is not readable JSON: {error}")
        return
    fault = bom_fault(content.decode("utf-8"))
    if fault:
        yield ReleaseFault(BOM_FILE, f"is no valid CycloneDX: {fault}")
        return
    named = dict(hashes_of(bill))
    for path, sha256 in named.items():
        if path not in release.files or release.files[path].sha256 != sha256:
            yield ReleaseFault(BOM_FILE, f"has another digest of {path} than the file")
    folders = [each["bundle"] for each in bundles_of(release.about).values()]
    folders += [each["folder"] for _, each in package_records(release.about)]
    for folder in folders:
        for path in release.files:
            if path.startswith(f"{folder}/") and path not in named:
                yield ReleaseFault(BOM_FILE, f"does not name {path}")


def _source(about: Mapping[str, Any]) -> str:
    source = about["source"]
    if source["commit"] is None:
        return "from no commit"
    dirty = ", changed in the working tree" if source["dirty"] else ""
    return f"from commit {source['commit'][:12]}{dirty}"


def _sentences(faults: Iterable[ReleaseFault]) -> tuple[str, ...]:
    return tuple(map(str, faults))
