import numpy as np

from onnxbuild.onnxkit.reference_files import ReferencePoint, ReferenceWriter, read_reference


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


def test_equal_arrays_give_equal_bytes(tmp_path):
    write(tmp_path / "a")
    write(tmp_path / "b")
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == ["example.npz", "min.npz", "points.json"]
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
