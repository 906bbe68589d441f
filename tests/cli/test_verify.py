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
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from onnxbuild.cli.verify import command
from onnxbuild.core.errors import EXIT_GATE, BuildError, NotReproducibleError
from onnxbuild.lock.compare import MISSING
from onnxbuild.release_format.checksums import check_sums
from onnxbuild.release_format.forms import json_bytes
from onnxbuild.release_format.layout import SIGNATURES
from onnxbuild.release_format.released import read_release
from onnxbuild.verification.replay import verify_run
from onnxbuild.verification.verify import verify_contents
from tests.cli.conftest import Project, Result, make_project

pytestmark = pytest.mark.slow

MODEL = "variants/fp32/model.onnx"
PROVENANCE = "provenance.intoto.json"


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


def look_at(path: Path, *arguments: str) -> Result:
    """`verify`, in this process: there is much to try."""
    done = CliRunner().invoke(command, [str(path), *arguments])
    if isinstance(done.exception, BuildError):
        return Result(done.exception.exit_code, done.stdout, str(done.exception))
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return Result(done.exit_code, done.stdout, done.stderr)


def key_of(project) -> tuple[str, str]:
    return "--key", str(project.folder / "team.pub.pem")


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
        flipped = look_at(release_of(released), *key_of(released))
        assert flipped.code == 4, name
        assert name in flipped.out
        path.write_bytes(content)
    assert look_at(release_of(released), *key_of(released)).code == 0


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
    done = look_at(release_of(released))
    assert done.code == 4
    assert f"FAILED  checksums: {named}" in done.out
    assert "NOT verified (exit code 4)" in done.err


def edit_json(path: Path, change) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_text(json.dumps(value, indent=2, sort_keys=True))


def edit_as_written(path: Path, change) -> None:
    value = json.loads(path.read_text())
    change(value)
    path.write_bytes(json_bytes(value))


def floats_for_ints(statement) -> None:
    inside = statement["predicate"]["buildDefinition"]["internalParameters"]
    inside["epoch_s"] = float(inside["epoch_s"])


def replace_text(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


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


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda about: about.update(format=99), "the release has format 99"),
        (lambda about: about.pop("variants"), "it does not say what is in it"),
        (lambda about: about["variants"].update(fp32=[]), "it does not say what is in it"),
        (lambda about: about.update(lock="nothing.lock"), "it does not say what is in it"),
        (lambda about: about.pop("epoch_s"), "it has no 'epoch_s'"),
        (lambda about: about.update(epoch_s=True), ".epoch_s is no number"),
        (lambda about: about.update(epoch_s=1e9), ".epoch_s is no number"),
        (
            lambda about: about["source"].update(changed=5, dirty=True),
            ".source.changed is no list",
        ),
        (
            lambda about: about["reports"].update({"reports/check.json": ["a"]}),
            ".reports.reports/check.json is no text",
        ),
        (
            lambda about: about["reports"].update({"../../../../etc/hostname": "tiny:check"}),
            ".reports.../../../../etc/hostname names no file of the release",
        ),
        (lambda about: about.update(lock="../../etc/passwd"), ".lock names no file"),
        (lambda about: about["variants"]["fp32"].update(golden="../.."), "names no folder"),
        (lambda about: about.update(variants={}), ".variants is empty"),
        (lambda about: about.update(name="tiny\x1b[2J"), ".name is no name"),
        (lambda about: about.update(more=1), "it has 'more', which no release has"),
    ],
)
def test_a_release_that_does_not_say_what_is_in_it_is_refused(released, damage, named):
    edit_as_written(release_of(released) / "release.json", damage)
    sum_again(release_of(released))
    done = look_at(release_of(released))
    assert done.code == 4
    assert named in done.err


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda text: "[" * 100_000, "it is nested too deep"),
        (lambda text: text.replace("{", '{"name": "evil",', 1), "it has a key twice"),
        (lambda text: text.replace("{", "{ ", 1), "in other bytes"),
        (lambda text: "5", "it is no mapping"),
    ],
)
def test_a_release_is_told_once_and_as_releases_are_written(released, damage, named):
    path = release_of(released) / "release.json"
    path.write_text(damage(path.read_text()))
    sum_again(release_of(released))
    done = look_at(release_of(released))
    assert done.code == 4
    assert named in done.err


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("packages:\n", "packages:\n  evil: evil\n"),
        ("resolved:\n", "resolved:\n  evil: 1\n"),
        ("steps:\n", "steps:\n  evil: 1\n"),
        ("# All", "[" * 5000),
    ],
)
def test_a_lock_that_can_not_be_followed_is_no_bug(released, old, new):
    folder = release_of(released)
    replace_text(folder / "recipe/tiny.lock", old, new)
    sum_again(folder)
    done = look_at(release_of(released))
    assert done.code == 4
    assert "can't be followed" in done.err or "this is not a lock" in done.err


def leaf_paths(value, path=()):
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaf_paths(each, (*path, key))
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from leaf_paths(each, (*path, number))
    if path:
        yield path


@pytest.mark.parametrize("name", ["release.json", PROVENANCE, "reports/benchmark.json"])
def test_any_value_gone_or_replaced_is_refused_by_name(released, name):
    folder = release_of(released)
    path = folder / name
    content = path.read_bytes()
    places = list(leaf_paths(json.loads(content)))
    assert len(places) > 20
    for place in places[:: max(1, len(places) // 60)]:
        for other in (None, [], {"a": [1]}, 10**400, "\x00\ud800", MISSING):
            value = json.loads(content)
            inner = value
            for key in place[:-1]:
                inner = inner[key]
            if other is MISSING:
                del inner[place[-1]]
            elif inner[place[-1]] == other:
                continue
            else:
                inner[place[-1]] = other
            path.write_bytes(json_bytes(value))
            sum_again(folder)
            try:
                found = list(verify_contents(read_release(check_sums(folder))))
                assert any(each.faults for each in found), (place, other)
            except NotReproducibleError:
                pass
        path.write_bytes(content)


def test_an_unsigned_look_still_refuses_signatures_that_are_none(released):
    folder = release_of(released)
    whole = {name: (folder / name).read_bytes() for name in SIGNATURES}
    for name, content, named in (
        ("SHA256SUMS.sig", b"x" * 5, "SHA256SUMS.sig has 5 bytes; a signature has 64"),
        ("SHA256SUMS.sig", None, "SHA256SUMS.sig is missing"),
        ("provenance.dsse.json", b"garbage", "provenance.dsse.json is no DSSE envelope"),
        ("provenance.dsse.json", b"[" * 100_000, "provenance.dsse.json is no DSSE envelope"),
        ("provenance.dsse.json", None, "provenance.dsse.json is missing"),
        (
            "provenance.dsse.json",
            whole["provenance.dsse.json"].replace(b"{", b'{"payload": "aaaa",', 1),
            "provenance.dsse.json is no DSSE envelope",
        ),
        (
            "provenance.dsse.json",
            whole["provenance.dsse.json"].replace(b"{", b'{"more": 1,', 1),
            "provenance.dsse.json is not written as a release has it",
        ),
    ):
        if content is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(content)
        for key in ((), key_of(released)):
            done = look_at(folder, *key)
            assert (done.code, f"FAILED  signature: {named}" in done.out) == (4, True), done.out
        (folder / name).write_bytes(whole[name])
    other = edit_keyid(whole["provenance.dsse.json"])
    (folder / "provenance.dsse.json").write_bytes(other)
    assert look_at(release_of(released), *key_of(released)).code == 4
    (folder / "provenance.dsse.json").write_bytes(whole["provenance.dsse.json"])
    (folder / "empty").mkdir()
    done = look_at(release_of(released), *key_of(released))
    assert (done.code, "FAILED  checksums: empty is an empty folder" in done.out) == (4, True)


def edit_keyid(envelope: bytes) -> bytes:
    value = json.loads(envelope)
    value["signatures"][0]["keyid"] = "0" * 64
    return json.dumps(value, sort_keys=True, indent=2).encode() + b"\n"


def rewrite(path: Path, change) -> None:
    """The same archive, with every entry changed."""
    with tarfile.open(path) as archive:
        entries = [(e, archive.extractfile(e).read() if e.isreg() else b"") for e in archive]
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for entry, content in entries:
            change(entry)
            archive.addfile(entry, io.BytesIO(content))


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(path.read_bytes() + b"junk"),
        lambda path: path.write_bytes(path.read_bytes() + bytes(10240)),
        lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\1"),
        lambda path: rewrite(path, lambda entry: setattr(entry, "mode", 0o777)),
        lambda path: rewrite(path, lambda entry: setattr(entry, "mtime", 1)),
        lambda path: rewrite(path, lambda entry: setattr(entry, "uname", "me")),
        lambda path: rewrite(
            path, lambda entry: setattr(entry, "name", entry.name.replace("tiny-1.0", "x"))
        ),
    ],
    ids=["trailing-junk", "trailing-zeros", "padding", "modes", "times", "owners", "top-folder"],
)
def test_an_archive_of_the_same_files_in_other_bytes_is_refused(released, change):
    path = released.folder / "dist/tiny-1.0.tar"
    change(path)
    done = look_at(path, *key_of(released))
    assert done.code == 4, done.out
    assert "FAILED  archive: has other bytes than the archive that a release of" in done.out


def test_what_a_release_is_called_does_nothing_to_a_terminal(released):
    evil = release_of(released) / "variants/\x1b[2J\u202e\x85"
    evil.write_text("")
    done = look_at(release_of(released))
    assert done.code == 4
    assert "variants/\\x1b[2J\\u202e\\x85 was added" in done.out


def test_a_provider_that_nobody_knows_is_refused_before_anything_is_checked(released):
    done = released("verify", "dist/tiny-1.0", "--run", "--provider", "cup")
    assert (done.code, done.out) == (2, "")
    assert "there is no provider 'cup'; expected one of cpu, " in done.err
    assert "fix: did you mean 'cpu'?" in done.err


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
        ([member("a/x", b"1"), member("a/x/y", b"2")], "'a/x/y' is there twice"),
        ([member("a/x/y", b"1"), member("a/x", b"2")], "'a/x' is there twice"),
        ([member("a/" + "n" * 300, b"1")], "can't be made: File name too long"),
        ([member("a/x", b"1", type=tarfile.GNUTYPE_SPARSE)], "is neither a file nor a folder"),
        (
            [member("a/x", pax_headers={"GNU.sparse.map": "0,0", "GNU.sparse.size": "9" * 12})],
            "is neither a file nor a folder",
        ),
        ([member("a/\x1b[2J", type=tarfile.FIFOTYPE)], "'a/\\x1b[2J' is neither"),
    ],
)
def test_an_archive_that_no_release_is_writes_nothing_outside(released, members, named):
    with tarfile.open(released.folder / "bad.tar", "w") as archive:
        for info, content in members:
            archive.addfile(info, content)
    done = look_at(released.folder / "bad.tar")
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
    sum_again(folder)
    (checked,) = verify_run(read_release(check_sums(folder)))
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
