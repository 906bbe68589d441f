import struct
import zipfile

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput
from onnxbuild.onnxkit.data.data_files import file_feeds
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
