import json

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.data.reference_files import (
    ConstantOutputs,
    ReferencePoint,
    ReferenceWriter,
    read_reference,
)
from onnxbuild.onnxkit.host.progress import listen


def write(folder):
    folder.mkdir()
    writer = ReferenceWriter(folder)
    feeds = {"x": np.arange(6, dtype=np.int64).reshape(2, 3), "allow_pickle": np.ones(1)}
    writer.add(ReferencePoint("example", {"batch": 2}, feeds, {"y": np.float32([1.5])}))
    writer.add(ReferencePoint("min", {"batch": 1}, feeds, {"y": np.float32([2.5])}))
    return writer.finish()


def test_points_come_back_in_order_with_their_arrays(tmp_path):
    assert write(tmp_path / "a") == 2
    first, second = read_reference(tmp_path / "a")
    assert (first.name, second.name) == ("example", "min")
    assert second.sizes == {"batch": 1}
    assert list(first.feeds) == ["x", "allow_pickle"]
    assert first.feeds["x"].dtype == np.int64
    assert first.feeds["x"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert second.outputs["y"].tolist() == [2.5]


def test_whoever_goes_through_the_points_is_so_far(tmp_path):
    count = write(tmp_path / "a")
    heard = []
    listen(lambda *said: heard.append(said))
    try:
        assert len(list(read_reference(tmp_path / "a"))) == count == 2
    finally:
        listen(None)
    assert [each for each in heard if not each[3]] == [
        (1, count, "points", ""),
        (2, count, "points", ""),
    ]
    assert [each[3] for each in heard if each[3]] == [
        "comparing at batch=2",
        "comparing at batch=1",
    ]


def test_equal_arrays_give_equal_bytes(tmp_path):
    write(tmp_path / "a")
    write(tmp_path / "b")
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["example.npz", "min.npz", "points.json"]
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def reported(folder):
    return json.loads((folder / "points.json").read_text())


def edit(folder, change):
    points = reported(folder)
    points = change(points) or points
    (folder / "points.json").write_text(json.dumps(points))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda points: points[0].update(file="/etc/hostname"), "[0].file is '/etc/hostname'"),
        (lambda points: points[0].update(file=None), "[0].file is None; expected 'example.npz'"),
        (lambda points: points[0].update(sizes={"batch": 2.5}), "[0].sizes is no mapping from"),
        (lambda points: points.clear(), "it is no list of points"),
        (lambda points: points[0].update(name="new", file="new.npz"), "new.npz can't be read: No"),
    ],
)
def test_a_list_of_points_that_no_reference_has_is_refused(tmp_path, change, named):
    write(tmp_path / "a")
    edit(tmp_path / "a", change)
    with pytest.raises(StepError) as caught:
        list(read_reference(tmp_path / "a"))
    assert named in caught.value.what
    assert caught.value.fix


def test_a_point_without_outputs_is_refused_since_anything_equals_them(tmp_path):
    write(tmp_path / "a")
    np.savez(tmp_path / "a/min.npz", **{"input.x": np.ones(2)})
    with pytest.raises(StepError, match="it has no outputs to compare with"):
        list(read_reference(tmp_path / "a"))


def test_rows_on_a_threshold_come_back_and_fit_the_others(tmp_path):
    def written(name, flags):
        (tmp_path / name).mkdir()
        writer = ReferenceWriter(tmp_path / name)
        arrays = {"x": np.ones((3, 2))}, {"y": np.ones(3)}
        writer.add(ReferencePoint("example", {"batch": 3}, *arrays, np.array(flags)))
        writer.finish()
        return tmp_path / name

    (point,) = read_reference(written("good", [True, False, True]))
    assert point.on_threshold.tolist() == [True, False, True]
    for name, flags in (("short", [True, False]), ("numbers", [1, 0, 1])):
        with pytest.raises(StepError, match="'on_threshold' has no flag for each row"):
            list(read_reference(written(name, flags)))


def notes(*arrays):
    found = ConstantOutputs()
    for array in arrays:
        found.add({"y": np.asarray(array)})
    return found.notes()


@pytest.mark.parametrize(
    ("arrays", "value"),
    [
        ([np.zeros((1, 4)), np.zeros((8, 4))], "0"),
        ([np.zeros((0, 4)), np.full((2, 4), 0.5)], "0.5"),
    ],
)
def test_an_output_with_one_value_everywhere_is_named(arrays, value):
    (note,) = notes(*arrays)
    assert note.startswith(f"output 'y' is {value} in every element at every point: ")
    assert "`reference: {samples: FILE.py:CALLABLE}`" in note


@pytest.mark.parametrize(
    "arrays",
    [
        [np.zeros((1, 4)), np.array([[0, 0, 0, 1e-9]])],
        [np.float32(14.3), np.float32(14.3)],
        [np.zeros((0, 4))],
    ],
)
def test_others_are_not(arrays):
    assert notes(*arrays) == ()


def test_a_reference_names_those_of_all_its_points(tmp_path):
    writer = ReferenceWriter(tmp_path)
    for name in ("a", "b"):
        outputs = {"dead": np.zeros((2, 4)), "alive": np.arange(4.0)}
        writer.add(ReferencePoint(name, {}, {"x": np.ones(1)}, outputs))
    (note,) = writer.notes()
    assert "'dead'" in note
