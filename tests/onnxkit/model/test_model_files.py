import numpy as np
import onnx
import onnxruntime
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.model.model_files import (
    file_bytes,
    first_equals,
    hand_on,
    load_model,
    model_path,
    save_graph,
    save_model,
    save_together,
    weight_array,
)
from onnxbuild.onnxkit.sessions.open import open_session
from tests.onnxkit.models import linear, model, value, weight


def test_small_models_are_one_file_that_reads_back(tmp_path):
    save_model(linear(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]
    assert load_model(tmp_path) == linear()
    assert load_model(tmp_path / "model.onnx") == linear()


def test_weights_go_next_to_the_graph_on_request_aligned_and_in_order(tmp_path):
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


def test_typed_fields_are_written_as_raw_data(tmp_path):
    made = linear()
    tensor = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [400, 3], [0.5] * 1200)
    made.graph.initializer[0].CopyFrom(tensor)
    save_model(made, tmp_path, external="always")
    again = onnx.numpy_helper.to_array(load_model(tmp_path).graph.initializer[0])
    assert again.shape == (400, 3)
    assert (again == 0.5).all()


@pytest.mark.parametrize("name", ["manifest.json", "model.textproto", "model.onnxtxt"])
@pytest.mark.filterwarnings("ignore:The onnxtxt format is experimental")
def test_a_text_that_is_no_model_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(b'{"variant": "int8"}')
    with pytest.raises(StepError, match=f"{name} is not an ONNX model") as caught:
        load_model(tmp_path / name)
    assert "name a model's file" in caught.value.fix
    assert "\n" not in caught.value.what


def test_a_missing_file_and_missing_weights_are_named(tmp_path):
    with pytest.raises(StepError, match=r"model.onnx can't be read"):
        load_model(tmp_path)
    save_model(linear(rows=600), tmp_path, external="always")
    (tmp_path / "model.onnx.data").unlink()
    with pytest.raises(StepError, match=r"needs its external data \(model.onnx.data\)"):
        load_model(tmp_path)


def test_mapped_weights_are_read_when_asked_for_and_copied_when_saved(tmp_path):
    save_model(linear(rows=600), tmp_path / "a", external="always")
    mapped = load_model(tmp_path / "a", weights="mapped")
    tensor = mapped.graph.initializer[0]
    assert not tensor.HasField("raw_data")
    holder = weight_array(tensor)
    while isinstance(holder, np.ndarray) and not isinstance(holder, np.memmap):
        holder = holder.base
    assert isinstance(holder, np.memmap)
    expected = onnx.numpy_helper.to_array(linear(rows=600).graph.initializer[0])
    assert np.array_equal(weight_array(tensor), expected)
    save_model(mapped, tmp_path / "b")
    assert load_model(tmp_path / "b") == load_model(tmp_path / "a")


def test_an_attribute_in_a_file_comes_into_the_model(tmp_path):
    array = np.arange(600, dtype=np.float32)
    constant = onnx.helper.make_node("Constant", [], ["c"], value=weight("c", array))
    made = model(
        [constant, onnx.helper.make_node("Add", ["x", "c"], ["y"])],
        [value("x", [600])],
        [value("y", [600])],
    )
    (tmp_path / "a").mkdir()
    onnx.save(
        made,
        tmp_path / "a/model.onnx",
        save_as_external_data=True,
        location="w.bin",
        size_threshold=0,
        convert_attribute=True,
    )
    assert (tmp_path / "a/w.bin").stat().st_size == array.nbytes
    save_model(load_model(tmp_path / "a", weights="mapped"), tmp_path / "b")
    assert [path.name for path in (tmp_path / "b").iterdir()] == ["model.onnx"]
    onnx.checker.check_model(str(tmp_path / "b/model.onnx"), full_check=True)
    (found,) = open_session(tmp_path / "b").run(None, {"x": np.zeros(600, np.float32)})
    assert np.array_equal(found, array)


def test_a_model_that_was_left_without_its_weights_is_not_saved(tmp_path):
    save_model(linear(rows=600), tmp_path / "a", external="always")
    with pytest.raises(ValueError, match="was loaded without its weights"):
        save_model(load_model(tmp_path / "a", weights="left"), tmp_path / "b")


def test_a_graph_for_a_session_links_to_its_weights_and_copies_none(tmp_path):
    save_model(linear(rows=600), tmp_path / "a", external="always")
    mapped = load_model(tmp_path / "a", weights="mapped")
    mapped.graph.output.append(onnx.helper.make_tensor_value_info("x", 1, None))
    save_graph(mapped, tmp_path / "b")
    assert (tmp_path / "b" / "model.onnx.data").readlink() == tmp_path / "a" / "model.onnx.data"
    x = np.ones((2, 600), np.float32)
    expected = open_session(tmp_path / "a").run(None, {"x": x})
    for lean in (False, True):
        found = open_session(tmp_path / "b", optimize=False, lean=lean).run(None, {"x": x})
        assert np.allclose(found[0], expected[0], rtol=1e-6)
        assert np.array_equal(found[1], x)


def test_a_file_that_lies_in_a_store_is_handed_on_without_a_copy(tmp_path):
    (tmp_path / "blob").write_text("weights")
    (tmp_path / "input").symlink_to("blob")
    hand_on(tmp_path / "input", tmp_path / "output")
    assert (tmp_path / "output").readlink() == tmp_path / "blob"
    hand_on(tmp_path / "blob", tmp_path / "copy")
    assert not (tmp_path / "copy").is_symlink()
    assert (tmp_path / "copy").read_text() == "weights"


def test_a_folder_with_a_model_of_each_form_is_refused_and_its_files_are_not(tmp_path):
    for name in ("model.onnx", "model.ort"):
        (tmp_path / name).write_bytes(b"")
        assert model_path(tmp_path / name) == tmp_path / name
    with pytest.raises(StepError, match=r"two models, model\.onnx and model\.ort"):
        model_path(tmp_path)
    (tmp_path / "model.onnx").unlink()
    assert model_path(tmp_path) == tmp_path / "model.ort"


def laid(folder, **files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_each_is_reported_the_first_that_is_the_same(tmp_path):
    models = {
        "one": laid(tmp_path / "one", model="abc", weights="def"),
        "two": laid(tmp_path / "two", model="abc", weights="dex"),
        "three": laid(tmp_path / "three", model="abc", weights="def"),
        "four": laid(tmp_path / "four", model="abc"),
        "five": laid(tmp_path / "five", model="abc", weights="def"),
        "six": laid(tmp_path / "six", model="abc", weight="def"),
    }
    assert first_equals(models) == {"three": "one", "five": "one"}


def test_only_what_is_run_alike_is_the_same(tmp_path):
    models = {name: laid(tmp_path / name, model="abc") for name in ("one", "two", "three")}
    ways = {"one": {"threads": 1}, "two": {"threads": 2}, "three": {"threads": 2}}
    assert first_equals(models, ways) == {"three": "two"}


def test_a_matrix_that_is_another_one_transposed_is_a_transpose_of_that(tmp_path):
    table = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    nodes = [
        onnx.helper.make_node("Gather", ["table", "ids"], ["rows"]),
        onnx.helper.make_node("MatMul", ["rows", "head"], ["logits"]),
    ]
    weights = [
        onnx.numpy_helper.from_array(table, "table"),
        onnx.numpy_helper.from_array(table.T.copy(), "head"),
    ]
    ids = onnx.helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, ["n"])
    logits = onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["n", 300])
    graph = onnx.helper.make_graph(nodes, "tied", [ids], [logits], weights)
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 18)], ir_version=10
    )
    save_model(model, tmp_path / "tied")
    (tmp_path / "all").mkdir()
    save_together({"tied.onnx": tmp_path / "tied"}, tmp_path / "all", "weights.data")
    assert (tmp_path / "all/weights.data").stat().st_size == table.nbytes
    onnx.checker.check_model(str(tmp_path / "all/tied.onnx"))
    feeds = {"ids": np.array([0, 299, 7])}
    found, expected = (
        onnxruntime.InferenceSession(path).run(None, feeds)[0]
        for path in (tmp_path / "all/tied.onnx", model.SerializeToString())
    )
    np.testing.assert_array_equal(found, expected)


def test_equal_weights_of_several_models_are_in_one_file_once(tmp_path):
    one, two = linear(rows=600), linear(rows=600)
    two.graph.initializer[0].name = two.graph.node[0].input[1] = "renamed"
    other = linear(rows=700)
    save_model(one, tmp_path / "one")
    save_model(two, tmp_path / "two", external="always")
    save_model(other, tmp_path / "other")
    folder = tmp_path / "all"
    folder.mkdir()
    sources = {f"{name}.onnx": tmp_path / name for name in ("one", "two", "other")}
    save_together(sources, folder, "weights.data")
    assert sorted(path.name for path in folder.iterdir()) == [
        "one.onnx", "other.onnx", "two.onnx", "weights.data",
    ]  # fmt: skip
    assert (folder / "weights.data").stat().st_size < 1.02 * (600 + 700) * 3 * 4
    for name, source in sources.items():
        before, after = (load_model(path) for path in (source, folder / name))
        assert {
            each.name: onnx.numpy_helper.to_array(each).tobytes()
            for each in after.graph.initializer
        } == {
            each.name: onnx.numpy_helper.to_array(each).tobytes()
            for each in before.graph.initializer
        }
        assert after.graph.node == before.graph.node
