"""`onnxbuild verify`: whatever somebody does to a release is named."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.cli.conftest import Project, make_project

pytestmark = pytest.mark.slow

MODEL = "variants/fp32/model.onnx"


def write_keys(folder: Path, name: str, key) -> None:
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = key.public_key()
    (folder / f"{name}.pem").write_bytes(private)
    for suffix, encoding, form in (
        ("pub.pem", serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        ("pub", serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH),
    ):
        (folder / f"{name}.{suffix}").write_bytes(public.public_bytes(encoding, form))


@pytest.fixture(scope="module")
def once_released(tmp_path_factory):
    project = make_project(tmp_path_factory.mktemp("released") / "project")
    for name, key in (
        ("team", Ed25519PrivateKey.generate()),
        ("other", Ed25519PrivateKey.generate()),
        ("curve", ec.generate_private_key(ec.SECP256R1())),
    ):
        write_keys(project.folder, name, key)
    assert project("lock", "tiny.yaml").code == 0
    done = project(
        "release", "tiny.yaml", "--version", "1.0", "--allow-dirty", "--sign", "team.pem"
    )
    assert done.code == 0, done.out + done.err
    return project


@pytest.fixture
def released(once_released, tmp_path):
    """A project with a signed release in dist/, at a path of its own."""
    return Project(shutil.copytree(once_released.folder, tmp_path / "project"))


def release_of(project) -> Path:
    return project.folder / "dist/tiny-1.0"


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def sum_again(folder: Path) -> None:
    """As somebody would who knows what SHA256SUMS is for."""
    names = sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )
    kept = [n for n in names if n not in ("SHA256SUMS", "SHA256SUMS.sig", "provenance.dsse.json")]
    lines = [f"{hashlib.sha256((folder / n).read_bytes()).hexdigest()}  {n}\n" for n in kept]
    (folder / "SHA256SUMS").write_text("".join(lines))


def test_a_release_is_verified_as_folder_and_as_archive(released, tmp_path):
    for path in ("dist/tiny-1.0", "dist/tiny-1.0.tar"):
        for key in ("team.pub.pem", "team.pub"):
            done = released("verify", path, "--key", key)
            assert done.code == 0, done.out
            assert f"ok      signature: made with the key {key}" in done.out
        assert done.out.endswith("verified: tiny 1.0\n")
    alone = Project(tmp_path / "elsewhere")  # nothing but the release is needed
    shutil.copytree(release_of(released), alone.folder / "it")
    there = alone("verify", "it", "--run")
    assert there.code == 0, there.out
    assert "skipped signature: there is one; to check it: --key PUBLIC.pem" in there.out
    assert "ok      fp32 on cpu: 4 golden points within tolerance" in there.out


def test_every_file_of_a_release_is_guarded(released):
    folder = release_of(released)
    names = sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    assert len(names) > 15
    for name in names:
        path = folder / name
        content = path.read_bytes()
        flip(path)
        flipped = released("verify", "dist/tiny-1.0", "--key", "team.pub.pem")
        assert flipped.code == 4, name
        assert name in flipped.out
        path.write_bytes(content)
    assert released("verify", "dist/tiny-1.0", "--key", "team.pub.pem").code == 0


DAMAGES = {
    "an added file": (
        lambda folder: (folder / "variants/extra.py").write_text("print()"),
        "variants/extra.py was added",
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


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda name: name.replace(" ", "-"))
def test_damage_is_named(released, damage):
    change, named = DAMAGES[damage]
    change(release_of(released))
    done = released("verify", "dist/tiny-1.0")
    assert done.code == 4
    assert f"FAILED  checksums: {named}" in done.out
    assert "NOT verified (exit code 4)" in done.err


def edit_json(path: Path, change) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=2, sort_keys=True))


def swap_model(folder: Path) -> None:
    """A model of somebody else's, with a manifest and checksums that fit."""
    flip(folder / MODEL)
    bundle = folder / "variants/fp32"
    sha256 = hashlib.sha256((folder / MODEL).read_bytes()).hexdigest()
    edit_json(bundle / "manifest.json", lambda m: m["files"]["model.onnx"].update(sha256=sha256))
    names = sorted(p.name for p in bundle.iterdir() if p.name != "SHA256SUMS")
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


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda name: name.replace(" ", "-"))
def test_a_forgery_with_checksums_that_fit_is_named(released, forgery):
    forge, named = FORGERIES[forgery]
    folder = release_of(released)
    forge(folder)
    sum_again(folder)
    done = released("verify", "dist/tiny-1.0")
    assert done.code == 4
    assert "ok      checksums" in done.out
    assert named in done.out
    signed = released("verify", "dist/tiny-1.0", "--key", "team.pub.pem")
    assert signed.code == 4
    assert "SHA256SUMS.sig is not this key's signature of SHA256SUMS" in signed.out


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda about: about.update(format=99), "the release has format 99"),
        (lambda about: about.pop("variants"), "it does not say what is in it"),
        (lambda about: about["variants"].update(fp32=[]), "it does not say what is in it"),
        (lambda about: about.update(lock="nothing.lock"), "it does not say what is in it"),
    ],
)
def test_a_release_that_does_not_say_what_is_in_it_is_refused(released, damage, named):
    edit_json(release_of(released) / "release.json", damage)
    sum_again(release_of(released))
    done = released("verify", "dist/tiny-1.0")
    assert done.code == 4
    assert named in done.err


def test_keys_that_are_none_or_another_are_refused(released):
    wrong = released("verify", "dist/tiny-1.0", "--key", "other.pub.pem")
    assert wrong.code == 4
    assert "SHA256SUMS.sig is not this key's signature of SHA256SUMS" in wrong.out
    for key, named in (
        ("nothing.pem", "can't read the key nothing.pem"),
        ("tiny.yaml", "tiny.yaml is no public key"),
        ("team.pem", "team.pem is a private key"),
        ("curve.pub.pem", "releases are signed with Ed25519"),
    ):
        done = released("verify", "dist/tiny-1.0", "--key", key)
        assert done.code == 2
        assert named in done.err
    (release_of(released) / "SHA256SUMS.sig").unlink()
    unsigned = released("verify", "dist/tiny-1.0", "--key", "team.pub.pem")
    assert unsigned.code == 4
    assert "SHA256SUMS.sig is missing: the release is not signed" in unsigned.out


def member(name: str, content: bytes = b"", **more) -> tuple[tarfile.TarInfo, io.BytesIO]:
    info = tarfile.TarInfo(name)
    info.size = len(content)
    for key, value in more.items():
        setattr(info, key, value)
    return info, io.BytesIO(content)


@pytest.mark.parametrize(
    ("members", "named"),
    [
        ([member("../evil", b"x")], "'../evil' leads out of the archive"),
        ([member("/tmp/evil", b"x")], "'/tmp/evil' leads out of the archive"),
        (
            [member("a/l", type=tarfile.SYMTYPE, linkname="/etc/passwd")],
            "'a/l' is neither a file nor a folder",
        ),
        ([member("a/x", b"1"), member("a/x", b"2")], "'a/x' is there twice"),
        ([member("a/x", b"1"), member("b/x", b"2")], "the archive holds 2 folders"),
    ],
)
def test_an_archive_that_no_release_is_writes_nothing_outside(released, members, named):
    with tarfile.open(released.folder / "bad.tar", "w") as archive:
        for info, content in members:
            archive.addfile(info, content)
    done = released("verify", "bad.tar")
    assert done.code == 4
    assert named in done.err
    assert not (released.folder.parent / "evil").exists()


def test_what_is_no_release_at_all_is_a_usage_error(released):
    for path, named in (
        ("nothing", "there is no release nothing"),
        ("tiny.yaml", "tiny.yaml is no archive of a release"),
    ):
        done = released("verify", path)
        assert done.code == 2
        assert named in done.err
    cut = (released.folder / "dist/tiny-1.0.tar").read_bytes()[:5000]
    (released.folder / "cut.tar").write_bytes(cut)
    done = released("verify", "cut.tar")
    assert done.code == 4
    assert "the archive is damaged" in done.err


def test_a_model_out_of_its_tolerance_fails_the_replay(released):
    folder = release_of(released)
    edit_json(
        folder / "variants/fp32/manifest.json",
        lambda m: m["validation"]["cpu"]["tolerances"].update(atol=0.0, rtol=0.0),
    )
    from onnxbuild.core.errors import EXIT_GATE
    from onnxbuild.release.replay import verify_run
    from onnxbuild.release.verify import read_release

    (checked,) = verify_run(read_release(folder))
    assert checked.exit_code == EXIT_GATE
    assert "elements differ by more than 0 + 0 |b|" in checked.faults[0]
    none_here = released("verify", "dist/tiny-1.0.tar", "--run", "--provider", "tensorrt")
    assert none_here.code != 0
    assert "tensorrt" in none_here.out + none_here.err


def test_a_rebuild_gives_the_same_bytes_or_says_where_it_parts(released):
    same = released("verify", "dist/tiny-1.0", "--rebuild")
    assert same.code == 0, same.out
    assert "ok      rebuilt: 7 steps from nothing, every output as released" in same.out
    released.edit("models/helper.py", "ReLU", "GELU")
    other = released("verify", "dist/tiny-1.0", "--rebuild")
    assert other.code == 4
    assert "not all as locked: source models/helper.py" in other.out
    assert "FAILED  rebuilt: 'model' of tiny:export is" in other.out
    away = Project(released.folder.parent)("verify", "project/dist/tiny-1.0", "--rebuild")
    assert away.code == 2
    assert "there is no tiny.yaml in the project here" in away.err
