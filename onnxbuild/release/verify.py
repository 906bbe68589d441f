"""Check a release: its checksums, its signature, and what it says of itself."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from onnxbuild.catalog import CATALOG
from onnxbuild.core.artifact import Artifact
from onnxbuild.core.digest import Digest
from onnxbuild.core.errors import EXIT_NOT_REPRODUCIBLE, NotReproducibleError
from onnxbuild.core.step import REPORT_FILE
from onnxbuild.lock.compare import leaves
from onnxbuild.lock.model import Lock
from onnxbuild.lock.text import parse_lock
from onnxbuild.release.bom import bom_fault
from onnxbuild.release.checksums import Fault, check_sums
from onnxbuild.release.contents import artifact_below, check_artifact, check_json, hashes_of
from onnxbuild.release.layout import (
    BOM_FILE,
    FORMAT,
    PROVENANCE_FILE,
    RELEASE_FILE,
    RESOLVED_FILE,
    SIGNATURE_FILE,
)
from onnxbuild.release.provenance import provenance
from onnxbuild.release.signature import check_signatures, read_public_key


@dataclass(frozen=True, slots=True)
class Checked:
    """What one check found.

    Attributes:
        title: What was checked.
        told: What is so, if nothing is wrong.
        faults: What is wrong; none if nothing is.
        exit_code: What the command ends with if something is wrong.
        skipped: It could not be checked; `told` says why.
    """

    title: str
    told: str = ""
    faults: tuple[str, ...] = ()
    exit_code: int = EXIT_NOT_REPRODUCIBLE
    skipped: bool = False


@dataclass(frozen=True, slots=True)
class Released:
    """A release whose files are what its checksums say.

    Attributes:
        folder: Where it lies.
        files: Path in it -> digest.
        about: release.json.
        lock: Its lock.
    """

    folder: Path
    files: Mapping[str, Digest]
    about: Mapping[str, Any]
    lock: Lock


def verify_files(folder: Path, key: Path | None) -> Iterator[Checked]:
    """Checksums and signature: whether the files are those that were released.

    Raises:
        UsageError: The key is none.
    """
    public_key = None if key is None else read_public_key(key)
    there, faults = check_sums(folder)
    size = sum(digest.size_bytes for digest in there.values())
    yield Checked(
        "checksums",
        f"{len(there)} files, {size / 2**20:.1f} MiB, as recorded",
        _sentences(faults),
    )
    if public_key is not None:
        wrong = check_signatures(folder, public_key)
        yield Checked("signature", f"made with the key {key}", _sentences(wrong))
    elif (folder / SIGNATURE_FILE).exists():
        yield Checked("signature", "there is one; to check it: --key PUBLIC.pem", skipped=True)
    else:
        yield Checked("signature", "the release is not signed", skipped=True)


def read_release(folder: Path) -> Released:
    """What a release says of itself.

    Raises:
        NotReproducibleError: It is not told, or in a form that this version does not know.
    """
    there, _ = check_sums(folder)
    try:
        about = json.loads((folder / RELEASE_FILE).read_text(encoding="utf-8"))
        known = about["format"] == FORMAT
        text = (folder / about["lock"]).read_text(encoding="utf-8")
        for told in about["variants"].values():
            str(told["bundle"] + told["step"] + told["golden"] + told["reference"])
        dict(about["reports"])
        str(about["name"] + about["version"])
        (about["source"]["commit"] or "").split()
        bool(about["source"]["dirty"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotReproducibleError(
            f"it does not say what is in it: {type(error).__name__}: {error}", where=RELEASE_FILE
        ) from error
    if not known:
        raise NotReproducibleError(
            f"the release has format {about['format']}; this onnxbuild reads {FORMAT}",
            where=RELEASE_FILE,
            fix="check it with the onnxbuild that made it",
        )
    return Released(folder, there, about, parse_lock(text, about["lock"], "fetch it again"))


def verify_contents(release: Released) -> Iterator[Checked]:
    """Provenance, lock, models and reports: whether they tell one story."""
    yield Checked(
        "provenance",
        f"of {release.about['name']} {release.about['version']}, {_source(release.about)}",
        _sentences(_check_provenance(release)),
    )
    yield Checked(
        "models",
        f"{len(release.about['variants'])} variants, as the lock names them",
        _sentences(_check_artifacts(release)),
    )
    yield Checked(
        "recipe and reports", "as the lock says", _sentences(_check_lock_copies(release))
    )
    yield Checked(
        "bill of materials", "valid, and of these files", _sentences(_check_bom(release))
    )


def _check_provenance(release: Released) -> Iterator[Fault]:
    """It follows from the rest of the release: derived again, it must be the same."""
    expected = provenance(release.about, release.lock, release.files)
    path = release.folder / PROVENANCE_FILE
    yield from check_json(path, PROVENANCE_FILE, expected, "the release itself implies")


def _check_artifacts(release: Released) -> Iterator[Fault]:
    """Every bundle, and the golden files, against the outputs that the lock names."""
    (bundle,) = CATALOG["package"].outputs.items()
    (reference,) = CATALOG["reference"].outputs.items()
    golden: dict[str, str] = {}
    for told in release.about["variants"].values():
        artifact = artifact_below(bundle[1], told["bundle"], release.files)
        yield from check_artifact(release.lock, told["step"], bundle[0], artifact, told["bundle"])
        golden[told["golden"]] = told["reference"]
    for prefix, step in golden.items():
        artifact = artifact_below(reference[1], prefix, release.files)
        yield from check_artifact(release.lock, step, reference[0], artifact, prefix)


def _check_lock_copies(release: Released) -> Iterator[Fault]:
    """What the lock says and is there once more for people: recipe, reports, measurements."""
    try:
        resolved = yaml.safe_load((release.folder / RESOLVED_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        yield Fault(RESOLVED_FILE, "is not readable YAML")
    else:
        for place, _, _ in leaves(resolved, release.lock.resolved):
            yield Fault(RESOLVED_FILE, f"differs from the lock at {place}")
    for path, step in release.about["reports"].items():
        if step in release.lock.measurements:
            measured = release.lock.measurements[step]
            yield from check_json(release.folder / path, path, measured, "the lock says")
        elif path not in release.files:
            yield Fault(path, "is missing")
        else:
            ((output, kind),) = CATALOG[_kind(release.lock, step)].outputs.items()
            report = Artifact(kind, ((REPORT_FILE, release.files[path]),))
            yield from check_artifact(release.lock, step, output, report, path)


def _kind(lock: Lock, step: str) -> str:
    """The kind of one of the lock's steps; one that it does not name counts as a check."""
    return lock.steps[step].kind.partition("/")[0] if step in lock.steps else "check"


def _check_bom(release: Released) -> Iterator[Fault]:
    """It keeps to its schema, and every file that it names has the digest that it says."""
    try:
        text = (release.folder / BOM_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        yield Fault(BOM_FILE, "can't be read")
        return
    fault = bom_fault(text)
    if fault:
        yield Fault(BOM_FILE, f"is no valid CycloneDX: {fault}")
        return
    named = dict(hashes_of(json.loads(text)))
    for path, sha256 in named.items():
        if path not in release.files or release.files[path].sha256 != sha256:
            yield Fault(BOM_FILE, f"has another digest of {path} than the file")
    for told in release.about["variants"].values():
        for path in release.files:
            if path.startswith(f"{told['bundle']}/") and path not in named:
                yield Fault(BOM_FILE, f"does not name {path}")


def _source(about: Mapping[str, Any]) -> str:
    source = about["source"]
    if source["commit"] is None:
        return "from no commit"
    dirty = ", changed in the working tree" if source["dirty"] else ""
    return f"from commit {source['commit'][:12]}{dirty}"


def _sentences(faults: Iterable[Fault]) -> tuple[str, ...]:
    return tuple(map(str, faults))
