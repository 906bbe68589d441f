"""A release as it is handed over: archives in other bytes, hostile ones, and what is none."""

import errno
import io
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.verification.conftest import key_of, look_at

pytestmark = pytest.mark.slow


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


def test_a_full_temporary_folder_is_named_with_another_way(tmp_path, monkeypatch):
    path = tmp_path / "tiny-1.0.tar"
    with tarfile.open(path, "w") as archive:
        archive.addfile(*member("tiny-1.0/release.json", b"{}"))

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shutil, "copyfileobj", refuse)
    done = look_at(path)
    assert done.code == 1
    assert f"to unpack {path}" in done.err
    assert "set TMPDIR to a folder on another disk" in done.err
    assert "cache gc" not in done.err


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
        ([member("a/x", b"1"), member("a/x", b"2")], "'x' is there twice"),
        ([member("a/x", b"1"), member("b/x", b"2")], "the archive holds 2 folders"),
        ([member("a/x", b"1"), member("a/x/y", b"2")], "'x' is a file and a folder"),
        ([member("a/x/y", b"1"), member("a/x", b"2")], "'x' is a file and a folder"),
        ([member("a/" + "n" * 300, b"1")], "has a part of more than 255 bytes"),
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
        (
            "artifacts/out/tiny/fp32",
            "artifacts/out/tiny/fp32 is no release: it has no release.json",
        ),
        ("dist", "`onnxbuild release` wrote, like dist/tiny-1.0\n"),
    ):
        done = released("verify", path)
        assert (done.code, done.out) == (2, "")
        assert named in done.err
    previous = released(
        "release", "tiny.yaml", "--version", "2.0", "--allow-dirty", "--previous", "dist"
    )
    assert previous.code == 2
    assert "dist is no release: it has no release.json" in previous.err
    (released.folder / "dist/tiny-1.0/release.json").unlink()
    done = released("verify", "dist/tiny-1.0")
    assert done.code == 4
    assert "FAILED  checksums: release.json is missing" in done.out
    cut = (released.folder / "dist/tiny-1.0.tar").read_bytes()[:5000]
    (released.folder / "cut.tar").write_bytes(cut)
    done = released("verify", "cut.tar")
    assert done.code == 4
    assert "the archive is damaged" in done.err
