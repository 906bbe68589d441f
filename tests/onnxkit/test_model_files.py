import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.model_files import file_bytes, load_model, save_model
from onnxbuild.onnxkit.sessions import open_session
from tests.onnxkit.models import linear, model, value, weight


def test_small_models_are_one_file_that_reads_back(tmp_path):
    save_model(linear(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    assert load_model(tmp_path) == linear()
    assert load_model(tmp_path / "model.onnx") == linear()


def test_weights_go_beside_the_graph_on_request_aligned_and_in_order(tmp_path):
    big = linear(rows=600, columns=500)
    save_model(big, tmp_path, external="always")

    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    skeleton = load_model(tmp_path, weights="left")
    entries = {e.key: e.value for e in skeleton.graph.initializer[0].external_data}
    assert entries == {"location": "model.onnx.data", "offset": "0", "length": "1200000"}
    second = {e.key: int(e.value) for e in skeleton.graph.initializer[1].external_data[1:]}
    assert second["offset"] % 64 == 0
    assert file_bytes(tmp_path) == sum(p.stat().st_size for p in tmp_path.iterdir())
    onnx.checker.check_model(str(tmp_path / "model.onnx"), full_check=True)
    x = np.ones((2, 600), np.float32)
    save_model(linear(rows=600, columns=500), tmp_path / "inside")
    outside, inside = (
        open_session(folder).run(None, {"x": x})[0] for folder in (tmp_path, tmp_path / "inside")
    )
    assert np.array_equal(outside, inside)


def test_weights_that_went_outside_come_back_whole(tmp_path):
    save_model(linear(rows=600), tmp_path, external="always")
    again = load_model(tmp_path)
    for found, expected in zip(
        again.graph.initializer, linear(rows=600).graph.initializer, strict=True
    ):
        assert np.array_equal(
            onnx.numpy_helper.to_array(found), onnx.numpy_helper.to_array(expected)
        )


def test_large_tensors_start_where_every_system_can_map_them(tmp_path):
    two = model(
        [onnx.helper.make_node("Add", ["a", "b"], ["y"])],
        [value("x", [1])],
        [value("y", [1 << 19])],
        [weight(n, np.zeros(1 << 19, np.float32)) for n in "ab"],
    )
    save_model(two, tmp_path, external="always")
    tensors = load_model(tmp_path, weights="left").graph.initializer
    offsets = [int(tensor.external_data[1].value) for tensor in tensors]
    assert offsets == [0, 1 << 21]
    assert offsets[1] % (1 << 16) == 0


def test_weights_over_the_limit_go_outside_by_themselves(tmp_path):
    save_model(linear(rows=100), tmp_path / "small", limit_bytes=5000)
    save_model(linear(rows=1000), tmp_path / "large", limit_bytes=5000)
    assert not (tmp_path / "small" / "model.onnx.data").exists()
    assert (tmp_path / "large" / "model.onnx.data").stat().st_size == 12000


def test_equal_models_give_equal_bytes(tmp_path):
    for name in ("one", "two"):
        save_model(linear(rows=600), tmp_path / name, external="always")
    for file in ("model.onnx", "model.onnx.data"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_typed_fields_are_written_as_raw_data(tmp_path):
    made = linear()
    tensor = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [400, 3], [0.5] * 1200)
    made.graph.initializer[0].CopyFrom(tensor)
    save_model(made, tmp_path, external="always")
    again = onnx.numpy_helper.to_array(load_model(tmp_path).graph.initializer[0])
    assert again.shape == (400, 3)
    assert (again == 0.5).all()


def test_a_file_that_is_no_model_is_named(tmp_path):
    (tmp_path / "model.onnx").write_text("version https://git-lfs.github.com/spec/v1")
    with pytest.raises(StepError, match=r"model.onnx is not an ONNX model"):
        load_model(tmp_path)


def test_a_missing_file_and_missing_weights_are_named(tmp_path):
    with pytest.raises(StepError, match=r"model.onnx can't be read"):
        load_model(tmp_path)
    save_model(linear(rows=600), tmp_path, external="always")
    (tmp_path / "model.onnx.data").unlink()
    with pytest.raises(StepError, match=r"needs its external data \(model.onnx.data\)"):
        load_model(tmp_path)
