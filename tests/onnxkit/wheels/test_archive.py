import base64
import hashlib
import zipfile

import pytest

from onnxbuild.onnxkit.wheels.archive import WheelError, digests_in, unpack_wheel, write_wheel

INFO = "model-1.0.dist-info"
FILES = {
    "model/__init__.py": b"X = 1\n",
    f"{INFO}/METADATA": b"Name: model\n",
    "model/a, b.txt": b"",
}


@pytest.fixture
def wheel(tmp_path):
    (tmp_path / "weights").write_bytes(bytes(range(256)) * 5000)
    path = tmp_path / "model-1.0-py3-none-any.whl"
    write_wheel(path, INFO, {**FILES, "model/weights": tmp_path / "weights"})
    return path


def test_a_wheel_has_the_same_bytes_in_whatever_order_files_come(wheel, tmp_path):
    again = tmp_path / "again.whl"
    files = {"model/weights": tmp_path / "weights", **dict(reversed(FILES.items()))}
    write_wheel(again, INFO, files)
    assert again.read_bytes() == wheel.read_bytes()


def test_members_are_sorted_metadata_is_last_and_record_has_each_digest(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert names == [
            "model/__init__.py", "model/a, b.txt", "model/weights", f"{INFO}/METADATA", f"{INFO}/RECORD",
        ]  # fmt: skip
        digest = base64.urlsafe_b64encode(hashlib.sha256(b"X = 1\n").digest()).decode().rstrip("=")
        lines = archive.read(names[-1]).decode().splitlines()
    assert lines[0] == f"model/__init__.py,sha256={digest},6"
    assert lines[1].startswith('"model/a, b.txt",')
    assert lines[-1] == f"{INFO}/RECORD,,"


def test_a_wheel_is_unpacked_file_by_file(wheel, tmp_path):
    unpack_wheel(wheel, tmp_path / "site")
    assert (tmp_path / "site/model/weights").read_bytes() == (tmp_path / "weights").read_bytes()
    assert (tmp_path / "site/model/a, b.txt").read_bytes() == b""


def rewritten(wheel, change):
    """The wheel with its members as `change` leaves them: name -> content."""
    with zipfile.ZipFile(wheel) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda m: m.update({"model/weights": b"other"}), "model/weights is not what RECORD says"),
        (lambda m: m.update({"model/more.py": b""}), "RECORD and members differ: .*more.py"),
        (lambda m: m.pop("model/weights"), "RECORD and members differ: .*weights"),
        (lambda m: m.pop(f"{INFO}/RECORD"), "has no RECORD"),
        (lambda m: m.update({"b-1.dist-info/RECORD": b""}), "has no RECORD of its own"),
    ],
)
def test_a_wheel_that_was_changed_is_refused(wheel, tmp_path, change, what):
    rewritten(wheel, change)
    with pytest.raises(WheelError, match=what):
        unpack_wheel(wheel, tmp_path / "site")


def test_a_member_that_leaves_the_folder_is_refused(wheel, tmp_path):
    def leave(members):
        members["../out.py"] = b""
        digest = base64.urlsafe_b64encode(hashlib.sha256(b"").digest()).decode().rstrip("=")
        members[f"{INFO}/RECORD"] += f"../out.py,sha256={digest},0\n".encode()

    rewritten(wheel, leave)
    with pytest.raises(WheelError, match="is not the name of a file"):
        unpack_wheel(wheel, tmp_path / "site")
    assert not (tmp_path / "out.py").exists()


@pytest.mark.parametrize("cut", [0, 100, -10])
def test_a_truncated_wheel_is_refused(wheel, tmp_path, cut):
    wheel.write_bytes(wheel.read_bytes()[:cut])
    with pytest.raises(WheelError, match="is no wheel"):
        unpack_wheel(wheel, tmp_path / "site")


def test_a_wheel_whose_members_stand_for_more_bytes_than_it_has_is_not_read(wheel, tmp_path):
    """`verify` hashes what is in a wheel: a compressed gigabyte, and one that many names share."""
    packed, shared = tmp_path / "packed.whl", tmp_path / "shared.whl"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model/weights", bytes(1 << 20))
    with zipfile.ZipFile(shared, "w") as archive:
        for number in range(50):
            archive.writestr(f"model/{number}", bytes(1000) if number == 0 else b"")
        first, *others = archive.infolist()
        for other in others:
            for name in ("file_size", "compress_size", "CRC", "header_offset"):
                setattr(other, name, getattr(first, name))
        archive._didModify = True
    for path, what in ((packed, "weights in it is compressed"), (shared, "claim more bytes than")):
        with pytest.raises(WheelError, match=what):
            dict(digests_in(path))
