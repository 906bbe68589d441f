"""Arrays of files that anybody may have written: read as numpy does, or refused by name."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from onnxbuild.onnxkit.data.array_files import read_arrays

ARRAYS = {
    "input.ids": np.arange(6, dtype=np.int64).reshape(2, 3),
    "by columns": np.asfortranarray(np.arange(6, dtype=np.float16).reshape(2, 3)),
    "nothing": np.zeros((0, 4), np.float32),
    "one": np.float64(2.5),
    "texts": np.array(["a", "bcd"]),
    "bytes": np.array([b"a", b"bcd"]),
    "flags": np.array([True, False]),
    "big endian": np.arange(3, dtype=">i4"),
}


def test_arrays_are_those_that_numpy_reads(tmp_path):
    np.savez(tmp_path / "a.npz", **ARRAYS)
    found = read_arrays(tmp_path / "a.npz")
    with np.load(tmp_path / "a.npz") as expected:
        assert list(found) == list(expected)
        for name, array in found.items():
            assert array.dtype == expected[name].dtype
            assert array.shape == expected[name].shape
            assert array.flags.writeable
            assert (array == expected[name]).all()


def header(shape: str, dtype: str = "'<f4'", version: bytes = b"\x01\x00") -> bytes:
    text = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text


def pack(path, members, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


@pytest.mark.parametrize(
    ("member", "named"),
    [
        (
            header("(1000000000000,)"),
            "claims 4000000000000 bytes of shape [1000000000000]; it has 0",
        ),
        (header("(-1,)"), "claims -4 bytes of shape [-1]"),
        (header("(2.5,)"), "is damaged: ValueError"),
        (header("(2,)", "[('a', '<f4')]") + bytes(8), "holds elements of type [('a', '<f4')]"),
        (header("(2,)", version=b"\x07\x00"), "has version (7, 0) of numpy's format"),
        (b"", "is damaged: "),
    ],
)
def test_a_member_whose_header_lies_is_refused_before_memory_is_taken(tmp_path, member, named):
    path = pack(tmp_path / "a.npz", [("x.npy", member)])
    tracemalloc.start()
    try:
        with pytest.raises(ValueError) as caught:
            read_arrays(path)
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert str(caught.value).startswith("its member 'x.npy' ")
    assert named in str(caught.value)


def whole() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(1 << 20))
    return file.getvalue()


def test_a_bomb_is_refused_by_its_form(tmp_path):
    packed = pack(tmp_path / "a.npz", [("x.npy", whole())], zipfile.ZIP_DEFLATED)
    assert packed.stat().st_size < 100_000
    with pytest.raises(ValueError, match=r"'x' is compressed; numpy\.savez compresses nothing"):
        read_arrays(packed)


def test_members_that_share_their_bytes_are_refused(tmp_path):
    """One body under many names in the list at the archive's end."""
    path = pack(tmp_path / "a.npz", [("x.npy", whole()), ("y.npy", b"")])
    with zipfile.ZipFile(path, "a") as archive:
        first, other = archive.infolist()
        for name in ("file_size", "compress_size", "CRC", "header_offset"):
            setattr(other, name, getattr(first, name))
        archive._didModify = True
    with pytest.raises(ValueError, match=r"claims more bytes than the file has|y\.npy"):
        read_arrays(path)


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda path: pack(path, [("x.txt", b"")]), "'x.txt' is no .npy file"),
        (lambda path: path.write_bytes(b"PK"), "it is no .npz file that numpy can read"),
        (lambda path: path.write_bytes(b""), "it is no .npz file that numpy can read"),
    ],
)
def test_what_is_no_archive_of_arrays_is_refused(tmp_path, make, named):
    make(tmp_path / "a.npz")
    with pytest.raises(ValueError, match=r"no \.np") as caught:
        read_arrays(tmp_path / "a.npz")
    assert named in str(caught.value)


def test_a_flipped_bit_is_noticed(tmp_path):
    path = pack(tmp_path / "a.npz", [("x.npy", whole())])
    content = bytearray(path.read_bytes())
    content[1 << 20] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"its member 'x\.npy' is damaged: BadZipFile: Bad CRC"):
        read_arrays(path)
