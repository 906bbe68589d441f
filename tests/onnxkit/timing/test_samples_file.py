import numpy as np
import pytest

from onnxbuild.onnxkit.timing.rounds import (
    SAMPLES_FILE,
    read_groups,
    read_samples,
    write_samples,
)


def test_turns_of_any_length_read_back(tmp_path):
    turns = [[1, 2, 3], [4], [5, 6]]
    write_samples(tmp_path, {"batch=1,sequence=8": [{"a/b": turns, "c": [[7]]}]})
    assert read_samples(tmp_path, "batch=1,sequence=8", "a/b") == turns
    assert read_samples(tmp_path, "batch=1,sequence=8", "c") == [[7]]
    with pytest.raises(KeyError):
        read_samples(tmp_path, "batch=1", "c")


def test_groups_read_back_one_by_one_and_all_together(tmp_path):
    groups = [{"base": [[1, 2], [3]], "a": [[4], [5]]}, {"base": [[6]], "b": [[7, 8]]}]
    write_samples(tmp_path, {"example": groups})
    assert read_groups(tmp_path, "example", "base") == [[[1, 2], [3]], [[6]]]
    assert read_groups(tmp_path, "example", "a") == [[[4], [5]], []]
    assert read_groups(tmp_path, "example", "b") == [[], [[7, 8]]]
    assert read_samples(tmp_path, "example", "base") == [[1, 2], [3], [6]]


def test_one_group_is_written_without_a_word_on_groups(tmp_path):
    write_samples(tmp_path, {"example": [{"a": [[1], [2, 3]]}]})
    with np.load(tmp_path / SAMPLES_FILE) as arrays:
        assert sorted(arrays) == ["example/a/runs_ns", "example/a/sizes"]
    assert read_groups(tmp_path, "example", "a") == [[[1], [2, 3]]]
