import io
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.array_files import read_arrays
from onnxbuild.onnxkit.data.calibration_data import file_feeds
from onnxbuild.onnxkit.data.feeds import check_feeds

IMAGE = (DummyInput("image", "float32", ("batch", 2)),)
TEXT = (
    DummyInput("ids", "int64", ("batch", "sequence")),
    DummyInput("mask", "int64", ("batch", "sequence")),
)
FIXED = (DummyInput("image", "float32", (1, 2)),)
ROWS = np.arange(10, dtype=np.float32).reshape(5, 2)


def fed(folder, inputs=IMAGE, axes=()):
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    named = [(path.relative_to(folder).as_posix(), path) for path in files]
    return list(file_feeds(named, inputs, axes, "here"))


def test_an_archive_is_cut_into_samples_along_the_leading_symbol(tmp_path):
    np.savez(tmp_path / "calib.npz", image=ROWS)
    found = fed(tmp_path)
    assert [label for label, _ in found][:2] == ["calib.npz, sample 0", "calib.npz, sample 1"]
    assert [feeds["image"].tolist() for _, feeds in found] == [[row.tolist()] for row in ROWS]


def test_without_a_symbol_in_front_a_file_is_a_sample(tmp_path):
    for n in range(3):
        np.save(tmp_path / f"{n}.npy", ROWS[n : n + 1])
    found = fed(tmp_path, FIXED)
    assert [label for label, _ in found] == [f"{n}.npy, sample 0" for n in range(3)]
    assert found[2][1]["image"].tolist() == [[4, 5]]


def test_arrays_named_after_inputs_belong_together_folder_by_folder(tmp_path):
    for folder, length in (("a", 3), ("b", 7)):
        (tmp_path / folder).mkdir()
        for name in ("ids", "mask"):
            np.save(tmp_path / folder / f"{name}.npy", np.ones((2, length), np.int64))
    found = fed(tmp_path, TEXT)
    assert [label for label, _ in found] == [f"{f}, sample {n}" for f in "ab" for n in (0, 1)]
    assert [feeds["mask"].shape for _, feeds in found] == [(1, 3), (1, 3), (1, 7), (1, 7)]


@pytest.mark.parametrize(
    ("name", "content", "inputs", "what"),
    [
        ("a.npz", b"no zip", IMAGE, "'a.npz' can't be read: "),
        ("a.npy", b"\x93NUMPY\x01\x00", IMAGE, "'a.npy' can't be read: "),
        ("a.npy", b"", TEXT, "'a.npy' is named after none of the inputs ids, mask"),
    ],
)
def test_files_that_hold_no_feeds_are_errors_with_their_name(
    tmp_path, name, content, inputs, what
):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(StepError) as caught:
        fed(tmp_path, inputs)
    assert caught.value.what.startswith(what)


def test_objects_are_not_unpickled(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{}], object), allow_pickle=True)
    with pytest.raises(StepError, match=r"'a\.npy' can't be read"):
        fed(tmp_path)


def test_arrays_of_different_lengths_are_an_error(tmp_path):
    np.savez(tmp_path / "a.npz", ids=np.ones((2, 3)), mask=np.ones((4, 3)))
    with pytest.raises(StepError) as caught:
        fed(tmp_path, TEXT)
    assert caught.value.what == "the arrays hold different numbers of samples: 'ids' 2, 'mask' 4"


def test_strings_and_names_with_dots_and_slashes_are_read(tmp_path):
    inputs = (
        DummyInput("text", "string", ("batch",)),
        DummyInput("past.0/key", "bfloat16", ("batch", 2)),
    )
    arrays = {"text": np.array(["to be", "or", "not", "to", "be"]), "past.0/key": ROWS}
    np.savez(tmp_path / "calib.npz", **arrays)
    found = [check_feeds(feeds, inputs, "here") for _, feeds in fed(tmp_path, inputs)]
    assert [feeds["text"].tolist() for feeds in found] == [[each] for each in arrays["text"]]
    assert [feeds["past.0/key"].tolist() for feeds in found] == [[row] for row in ROWS.tolist()]


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


def npy(header: bytes) -> bytes:
    return b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header)) + header


CLAIM = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d, 2), }\n"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (npy(CLAIM % 2**50), "Unable to allocate"),  # 9 PB
        (npy(b"(" * 50_000), "Header info length"),
        (b"text", "'image' in it is no array"),
    ],
    ids=["claim", "header", "text"],
)
def test_a_hostile_array_is_refused_in_one_line(content, what, tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("image.npy", content)
    with pytest.raises(StepError, match=what) as caught:
        fed(tmp_path)
    assert "\n" not in caught.value.what
    assert "allow_pickle" not in caught.value.what


def test_an_archive_whose_compressed_bytes_are_damaged_is_an_error(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", image=ROWS)
    content = bytearray((tmp_path / "a.npz").read_bytes())
    content[60:100] = b"\xff" * 40
    (tmp_path / "a.npz").write_bytes(content)
    with pytest.raises(StepError, match=r"'a\.npz' can't be read"):
        fed(tmp_path)
