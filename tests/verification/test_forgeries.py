"""Whatever somebody does to the files of a release is named."""

import hashlib
import shutil
from pathlib import Path

import pytest
import yaml

from onnxbuild.release_format.layout import SIGNATURES
from tests.verification.conftest import (
    MODEL,
    PROVENANCE,
    edit_as_written,
    edit_json,
    flip,
    key_of,
    look_at,
    release_of,
    replace_text,
    sum_again,
)

pytestmark = pytest.mark.slow


@pytest.mark.always
def test_every_file_of_a_release_is_guarded(released):
    folder = release_of(released)
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    assert len(names) > 15
    for name in names:
        path = folder / name
        content = path.read_bytes()
        flip(path)
        flipped = look_at(release_of(released), *key_of(released))
        assert flipped.code == 4, name
        assert name in flipped.out
        path.write_bytes(content)
    assert look_at(release_of(released), *key_of(released)).code == 0


DAMAGES = {
    "an added file": (
        lambda folder: (folder / "variants/extra.txt").write_text("print()"),
        "variants/extra.txt was added",
    ),
    "a removed file": (
        lambda folder: (folder / "golden/min.npz").unlink(),
        "golden/min.npz is missing",
    ),
    "a renamed file": (
        lambda folder: (folder / MODEL).rename(folder / "variants/fp32/m.onnx"),
        f"{MODEL} is missing",
    ),
    "an emptied file": (lambda folder: (folder / MODEL).write_bytes(b""), f"{MODEL} has changed"),
    "a link": (
        lambda folder: (folder / "variants/link").symlink_to("/etc/hostname"),
        "variants/link is neither a file nor a folder",
    ),
    "no checksums": (lambda folder: (folder / "SHA256SUMS").unlink(), "SHA256SUMS is missing"),
    "a line that says nothing": (
        lambda folder: (folder / "SHA256SUMS").write_text("hello\n"),
        "SHA256SUMS has a line that says nothing: 1",
    ),
}


@pytest.mark.always
@pytest.mark.parametrize("damage", DAMAGES, ids=lambda name: name.replace(" ", "-"))
def test_damage_is_named(released, damage):
    change, named = DAMAGES[damage]
    change(release_of(released))
    done = look_at(release_of(released))
    assert done.code == 4
    assert f"FAILED  checksums: {named}" in done.out
    assert "NOT verified (exit code 4)" in done.err


def floats_for_ints(statement) -> None:
    inside = statement["predicate"]["buildDefinition"]["internalParameters"]
    inside["epoch_s"] = float(inside["epoch_s"])


def swap_model(folder: Path) -> None:
    """A model of somebody else's, with a manifest and checksums that fit."""
    flip(folder / MODEL)
    bundle = folder / "variants/fp32"
    sha256 = hashlib.sha256((folder / MODEL).read_bytes()).hexdigest()
    edit_json(bundle / "manifest.json", lambda m: m["files"]["model.onnx"].update(sha256=sha256))
    files = (p for p in bundle.rglob("*") if p.is_file() and p.name != "SHA256SUMS")
    names = sorted(p.relative_to(bundle).as_posix() for p in files)
    lines = [f"{hashlib.sha256((bundle / n).read_bytes()).hexdigest()}  {n}\n" for n in names]
    (bundle / "SHA256SUMS").write_text("".join(lines))


def lock_edit(folder: Path) -> None:
    path = folder / "recipe/tiny.lock"
    lock = yaml.safe_load(path.read_text())
    lock["steps"]["tiny:fp32/package"]["outputs"]["bundle"]["sha256"] = "0" * 64
    path.write_text(yaml.safe_dump(lock))


FORGERIES = {
    "another builder in the provenance": (
        lambda folder: edit_json(
            folder / "provenance.intoto.json",
            lambda p: p["predicate"]["runDetails"]["builder"].update(id="https://me"),
        ),
        'predicate.runDetails.builder.id = "https://me"; the release itself implies',
    ),
    "another commit in the provenance": (
        lambda folder: edit_json(
            folder / "provenance.intoto.json",
            lambda p: p["predicate"]["buildDefinition"]["resolvedDependencies"].pop(),
        ),
        "says predicate.buildDefinition.resolvedDependencies = ",
    ),
    "another model": (swap_model, "variants/fp32 is not the 'bundle' of tiny:fp32/package"),
    "other golden outputs": (
        lambda folder: shutil.copy(folder / "golden/example.npz", folder / "golden/min.npz"),
        "golden is not the 'reference' of tiny:reference that the lock names",
    ),
    "another lock": (lock_edit, "variants/fp32 is not the 'bundle' of tiny:fp32/package"),
    "another recipe": (
        lambda folder: (folder / "recipe/resolved.yaml").write_text("tiny: {opset: 1}\n"),
        "recipe/resolved.yaml differs from the lock at tiny.",
    ),
    "better latencies": (
        lambda folder: edit_json(
            folder / "reports/benchmark.json", lambda b: b["points"][0].update(items=1000)
        ),
        "reports/benchmark.json says points[0].items = 1000; the lock says",
    ),
    "another report": (
        lambda folder: edit_json(folder / "reports/check.json", lambda r: r.update(extra=1)),
        "reports/check.json is not the 'report' of tiny:check that the lock names",
    ),
    "a bill that breaks its schema": (
        lambda folder: edit_json(folder / "bom.cdx.json", lambda b: b.update(surprise=1)),
        "bom.cdx.json is no valid CycloneDX",
    ),
    "a bill of other files": (
        lambda folder: edit_json(folder / "bom.cdx.json", lambda b: b.update(components=[])),
        "bom.cdx.json does not name variants/fp32/",
    ),
}
FORGERIES |= {
    "a key of the provenance twice": (
        lambda folder: replace_text(
            folder / PROVENANCE, "{\n", '{\n  "subject": [{"name": "evil"}],\n'
        ),
        "provenance.intoto.json is not readable JSON: it has a key twice",
    ),
    "a null in the provenance": (
        lambda folder: edit_as_written(
            folder / PROVENANCE, lambda p: p["predicate"].update(evil=None)
        ),
        "says predicate.evil = null; the release itself implies nothing",
    ),
    "a float in the provenance": (
        lambda folder: edit_as_written(folder / PROVENANCE, floats_for_ints),
        "the release itself implies 315532800",
    ),
    "spaces in the provenance": (
        lambda folder: replace_text(folder / PROVENANCE, "{\n", "{ \n"),
        "provenance.intoto.json says what it should, in other bytes than a release has",
    ),
    "spaces in a measurement": (
        lambda folder: replace_text(folder / "reports/benchmark.json", "{\n", "{ \n"),
        "reports/benchmark.json says what it should, in other bytes",
    ),
    "a comment in the resolved recipe": (
        lambda folder: replace_text(folder / "recipe/resolved.yaml", "\n", "  # evil\n"),
        "recipe/resolved.yaml says what it should, in other bytes",
    ),
    "another page": (
        lambda folder: replace_text(folder / "README.md", "# tiny 1.0\n", "# tiny 1.0\n\nevil\n"),
        "README.md is not as the release itself implies: line 3",
    ),
    "a bill that says a thing twice": (
        lambda folder: replace_text(folder / "bom.cdx.json", "{\n", '{\n  "version": 7,\n'),
        "bom.cdx.json is not readable JSON: it has a key twice",
    ),
    "a bill nested beyond measure": (
        lambda folder: (folder / "bom.cdx.json").write_text("[" * 100_000),
        "bom.cdx.json is not readable JSON: it is nested too deep",
    ),
}


@pytest.mark.always
@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda name: name.replace(" ", "-"))
def test_a_forgery_with_checksums_that_fit_is_named(released, forgery):
    forge, named = FORGERIES[forgery]
    folder = release_of(released)
    forge(folder)
    sum_again(folder)
    signed = look_at(folder, *key_of(released))
    assert signed.code == 4
    assert "SHA256SUMS.sig is not this key's signature of SHA256SUMS" in signed.out
    for name in SIGNATURES:
        (folder / name).unlink()
    done = look_at(folder)
    assert done.code == 4
    assert "ok      checksums" in done.out
    assert named in done.out


def test_what_a_release_is_called_does_nothing_to_a_terminal(released):
    evil = release_of(released) / "variants/\x1b[2J\u202e\x85"
    evil.write_text("")
    done = look_at(release_of(released))
    assert done.code == 4
    assert "'variants/\\x1b[2J\\u202e\\x85' has characters that can't be seen" in done.out
    assert "\x1b" not in done.out + done.err
