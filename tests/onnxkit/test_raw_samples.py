import pytest

from onnxbuild.onnxkit.raw_samples import read_samples, write_samples


def test_turns_of_any_length_read_back(tmp_path):
    turns = [[1, 2, 3], [4], [5, 6]]
    write_samples(tmp_path, {"batch=1,sequence=8": {"a/b": turns, "c": [[7]]}})
    assert read_samples(tmp_path, "batch=1,sequence=8", "a/b") == turns
    assert read_samples(tmp_path, "batch=1,sequence=8", "c") == [[7]]
    with pytest.raises(KeyError):
        read_samples(tmp_path, "batch=1", "c")
