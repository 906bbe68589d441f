"""Where two artifacts part: named down to the element, the attribute, the key or the byte."""

import itertools
import json
import math

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.differences.first_difference import first_difference
from onnxbuild.onnxkit.differences.models import compare_models
from onnxbuild.onnxkit.differences.sentences import say
from onnxbuild.onnxkit.differences.values import array_difference, compare_arrays
from onnxbuild.onnxkit.model.model_files import save_model
from tests.onnxkit.models import linear, weight

GREATEST = np.iinfo(np.int64).max


@pytest.mark.parametrize(
    ("one", "other", "gap"),
    [
        (np.int64([GREATEST, 1]), np.int64([GREATEST - 1, 1]), 1.0),
        (np.int8([-128, 0]), np.int8([127, 0]), 255.0),
        (np.float32([1, 2]), np.float32([math.inf, 2]), math.inf),
        (np.array([True]), np.array([False]), 1.0),
    ],
)
def test_the_largest_gap_is_exact_and_infinite_where_a_side_is(one, other, gap):
    found = compare_arrays(one, other)
    assert found.max_abs == gap


ML = "ai.onnx.ml"
COEFFICIENTS = [n / 4 for n in range(40)]


def model(nodes, *, inputs=None, outputs=None, opset=18, ml=3, sparse=()):
    graph = helper.make_graph(
        nodes, "g",
        inputs or [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("batch", 4))],
        outputs or [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("batch", 10))],
        sparse_initializer=list(sparse),
    )  # fmt: skip
    imports = [helper.make_opsetid("", opset), helper.make_opsetid(ML, ml)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


@pytest.fixture
def compared(tmp_path):
    """Returns what is said of two models."""
    numbers = itertools.count()

    def of(one, other):
        paths = []
        for each in (one, other):
            paths.append(tmp_path / f"{next(numbers)}.onnx")
            onnx.checker.check_model(each)
            onnx.save(each, paths[-1])
        return say(compare_models(*paths))

    return of


@pytest.fixture
def sentences(compared):
    """Returns the sentences alone."""
    return lambda *models: [each.sentence for each in compared(*models)]


def regressor(coefficients):
    node = helper.make_node(
        "LinearRegressor", ["x"], ["y"], name="linear", domain=ML,
        coefficients=coefficients, intercepts=[0.0] * 10, targets=10,
    )  # fmt: skip
    return model([node])


def with_one(values, place, value):
    return [*values[:place], value, *values[place + 1 :]]


def test_one_number_of_a_long_list(compared):
    (said,) = compared(regressor(COEFFICIENTS), regressor(with_one(COEFFICIENTS, 30, 0.5)))
    assert said.sentence == (
        "attribute 'coefficients' of LinearRegressor 'linear': 1 of 40 elements differs, by 7 "
        "(71.8 % of its largest value)"
    ).replace("LinearRegressor", f"{ML}.LinearRegressor")
    assert said.data == {
        "kind": "attribute", "where": "", "name": "coefficients", "nodes": [f"{ML}.LinearRegressor 'linear'"],
        "old": "float32 [40]", "new": "float32 [40]",
        "values": {
            "count": 1, "size": 40, "first": [30], "old": "7.5", "new": "0.5", "max_abs": 7.0,
            "max_rel": 7 / 9.75,
        },
    }  # fmt: skip


def encoder(*, keys=None, values=None, ml=2):
    """A LabelEncoder from text to numbers: lists in its opset 2, tensors from 4 on."""
    keys = keys or [f"word{n}" for n in range(40)]
    values = values or list(range(40))
    if ml == 2:
        attributes = {"keys_strings": keys, "values_int64s": values}
    else:
        attributes = {
            "keys_tensor": numpy_helper.from_array(np.array(keys, object)),
            "values_tensor": numpy_helper.from_array(np.array(values, np.int64)),
        }
    node = helper.make_node("LabelEncoder", ["x"], ["y"], name="encode", domain=ML, **attributes)
    return model(
        [node],
        inputs=[helper.make_tensor_value_info("x", TensorProto.STRING, ("batch",))],
        outputs=[helper.make_tensor_value_info("y", TensorProto.INT64, ("batch",))],
        ml=ml,
    )


@pytest.mark.parametrize(
    ("ml", "keys", "values"),
    [(2, "keys_strings", "values_int64s"), (4, "keys_tensor", "values_tensor")],
)
def test_a_label_encoder_with_one_value_changed(sentences, ml, keys, values):
    of = f"of {ML}.LabelEncoder 'encode'"
    other = encoder(values=with_one(list(range(40)), 12, 19), ml=ml)
    assert sentences(encoder(ml=ml), other) == [
        f"attribute '{values}' {of}: 1 of 40 elements differs, by 7 (17.9 % of its largest value)"
    ]
    words = [f"word{n}" for n in range(40)]
    other = encoder(keys=with_one(words, 12, "other"), ml=ml)
    assert sentences(encoder(ml=ml), other) == [
        f"attribute '{keys}' {of}: 1 of 40 elements differs: 'word12' -> 'other'"
    ]
    other = encoder(keys=with_one(with_one(words, 12, "other"), 3, "more"), ml=ml)
    assert sentences(encoder(ml=ml), other) == [
        f"attribute '{keys}' {of}: 2 of 40 elements differ, the first: 'word3' -> 'more'"
    ]


def test_tensors_that_are_written_in_another_way_are_equal(sentences):
    one, other = encoder(ml=4), encoder(ml=4)
    (held,) = (a.t for a in other.graph.node[0].attribute if a.name == "values_tensor")
    held.int64_data.extend(numpy_helper.to_array(held).tolist())
    held.ClearField("raw_data")
    held.name = "values"
    other.graph.node[0].attribute[0].doc_string = "the words"
    assert one != other
    assert sentences(one, other) == []


def trees(thresholds):
    """A TreeEnsemble of opset 5: its weights are tensors."""
    count = len(thresholds)
    node = helper.make_node(
        "TreeEnsemble", ["x"], ["y"], name="trees", domain=ML, n_targets=1, aggregate_function=1,
        post_transform=0, tree_roots=list(range(count)),
        nodes_modes=numpy_helper.from_array(np.zeros(count, np.uint8)),
        nodes_featureids=[0] * count,
        nodes_splits=numpy_helper.from_array(np.array(thresholds, np.float32)),
        nodes_truenodeids=list(range(count)), nodes_trueleafs=[1] * count,
        nodes_falsenodeids=list(range(count)), nodes_falseleafs=[1] * count,
        leaf_targetids=[0] * count,
        leaf_weights=numpy_helper.from_array(np.ones(count, np.float32)),
    )  # fmt: skip
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("batch", 1))]
    return model([node], outputs=outputs, opset=21, ml=5)


def test_one_threshold_of_a_tree(sentences):
    splits = [n / 2 for n in range(1, 21)]
    assert sentences(trees(splits), trees(with_one(splits, 5, 4.0))) == [
        (
            f"attribute 'nodes_splits' of {ML}.TreeEnsemble 'trees': 1 of 20 elements differs, by 1 "
            "(10 % of its largest value)"
        )
    ]


def sparse(name, entries, shape=(4, 10), *, flat=False, dtype=np.float32):
    places = [divmod(place, shape[1]) if not flat else place for place in entries]
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.array(list(entries.values()), dtype), name),
        numpy_helper.from_array(np.array(places, np.int64)),
        list(shape),
    )


PRODUCT = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
ENTRIES = {2: 1.0, 11: 2.0, 37: 8.0}


def test_a_sparse_weight(compared, sentences):
    one = model([PRODUCT], sparse=[sparse("w", ENTRIES)])
    (said,) = compared(one, model([PRODUCT], sparse=[sparse("w", {**ENTRIES, 11: 4.0})]))
    assert said.sentence == (
        "weight 'w' of MatMul 'product': 1 of 40 elements differs, by 2 (25 % of its largest value)"
    )
    assert (said.data["old"], said.data["values"]["first"]) == ("sparse float32 [4, 10]", [1, 1])
    moved = model([PRODUCT], sparse=[sparse("w", {2: 1.0, 12: 2.0, 37: 8.0})])
    assert sentences(one, moved) == [
        (
            "weight 'w' of MatMul 'product': 2 of 40 elements differ, by at most 2 (25 % of its "
            "largest value)"
        )
    ]
    wider = model([PRODUCT], sparse=[sparse("w", ENTRIES, dtype=np.float64)])
    del wider.graph.node[:], one.graph.node[:]
    for each in (one, wider):
        read = helper.make_node("Cast", ["w"], ["f"], to=TensorProto.FLOAT, name="cast")
        each.graph.node.extend([read, helper.make_node("MatMul", ["x", "f"], ["y"], name="m")])
    assert sentences(one, wider) == [
        "weight 'w' of Cast 'cast': sparse float32 [4, 10] -> sparse float64 [4, 10]"
    ]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda t: t.indices.dims.append(1), "index|indices|reshape|damaged"),
        (
            lambda t: t.values.MergeFrom(TensorProto(data_location=TensorProto.EXTERNAL)),
            "is in a file, where ONNX has dense ones alone",
        ),
    ],
)
def test_a_damaged_sparse_weight_is_refused(tmp_path, change, what):
    good, bad = tmp_path / "good.onnx", tmp_path / "bad.onnx"
    one = model([PRODUCT], sparse=[sparse("w", ENTRIES)])
    onnx.save(one, good)
    change(one.graph.sparse_initializer[0])
    bad.write_bytes(one.SerializeToString())
    with pytest.raises(StepError, match=what):
        compare_models(good, bad)


def folders(tmp_path, one, other, name):
    """The difference of two artifacts of one file each."""
    for side, content in (("one", one), ("other", other)):
        (tmp_path / side).mkdir(parents=True)
        (tmp_path / side / name).write_bytes(content)
    return str(first_difference(tmp_path / "one", tmp_path / "other"))


def models(tmp_path, one, other, **options):
    save_model(one, tmp_path / "one", **options)
    save_model(other, tmp_path / "other", **options)
    return str(first_difference(tmp_path / "one", tmp_path / "other"))


def changed_weight(made):
    array = numpy_helper.to_array(made.graph.initializer[0]).copy()
    array[1, 2] += 0.5
    array[3, 0] -= 0.25
    made.graph.initializer[0].CopyFrom(weight("w", array))
    return made


# --- arrays ----------------------------------------------------------------------------------------


def test_equal_arrays_do_not_differ():
    assert array_difference(np.arange(5), np.arange(5)) == ""
    assert array_difference(np.zeros((0, 3)), np.zeros((0, 3))) == ""
    nan = np.array([np.nan], np.float32)
    assert array_difference(nan, nan.copy()) == ""


def test_an_array_says_how_many_where_and_by_how_much():
    one = np.zeros((2, 3), np.float32)
    other = one.copy()
    other[1, 1], other[1, 2] = 0.25, -2
    expected = "float32 [2, 3]: 2 of 6 differ, by at most 2, the first at [1, 1]: 0 -> 0.25"
    assert array_difference(one, other) == expected


def test_large_arrays_are_compared_in_pieces():
    one = np.zeros((3, 1 << 20), np.float32)
    other = one.copy()
    other[1, 7], other[2, 9] = 1, 3
    said = "float32 [3, 1048576]: 2 of 3,145,728 differ, by at most 3, the first at [1, 7]: 0 -> 1"
    assert array_difference(one, other) == said


def test_bits_count_and_not_only_numbers():
    one, other = np.array([0.0]), np.array([-0.0])
    said = "float64 [1]: 1 of 1 differ, by at most 0, the first at [0]: 0 -> -0"
    assert array_difference(one, other) == said
    said = "float64 [1]: 1 of 1 differ, the first at [0]: 0 -> nan"
    assert array_difference(one, np.array([np.nan])) == said
    said = (
        "float64 [2]: 2 of 2 differ, some from or to NaN or infinity, the first at [0]: nan -> inf"
    )
    assert array_difference(np.array([np.nan, 1]), np.array([np.inf, 2])) == said


@pytest.mark.parametrize("dtype", ["bool", "complex64"])
def test_arrays_of_any_type(dtype):
    one, other = np.zeros(3, dtype), np.array([0, 1, 0], dtype)
    assert "1 of 3 differ, by at most 1, the first at [1]" in array_difference(one, other)


# --- models ----------------------------------------------------------------------------------------


def test_equal_models_do_not_differ(tmp_path):
    assert models(tmp_path, linear(), linear()) == "None"


@pytest.mark.parametrize("external", ["auto", "always"])
def test_a_model_is_said_to_differ_as_onnxbuild_diff_says_it(tmp_path, external):
    other = changed_weight(linear(400))
    other.graph.node[2].op_type = "Sigmoid"
    said = models(tmp_path, linear(400), other, external=external, limit_bytes=1 << 30)
    assert (tmp_path / "one/model.onnx.data").exists() == (external == "always")
    assert (
        said
        == "model.onnx: Relu 'clip' is now Sigmoid 'clip', between Add 'shift' and output 'y' (2 differences in all)"
    )


def test_models_that_mean_the_same_differ_in_a_field(tmp_path):
    other = linear()
    other.graph.node[2].name = "other"
    assert models(tmp_path, linear(), other) == "model.onnx: graph.node[2].name: 'clip' -> 'other'"
    shorter = linear()
    shorter.graph.value_info.add(name="h")
    said = models(tmp_path / "items", linear(), shorter)
    assert said == "model.onnx: graph.value_info has 0 -> 1 items"


# --- other files -----------------------------------------------------------------------------------


def test_arrays_in_a_file_are_named(tmp_path):
    for side, last in (("one", 1.0), ("other", 1.5)):
        (tmp_path / side).mkdir()
        np.savez(tmp_path / side / "p.npz", a=np.zeros(3), b=np.array([0, last]))
        np.save(tmp_path / side / "q.npy", np.array([last]))
    said = str(first_difference(tmp_path / "one", tmp_path / "other"))
    assert said == (
        "p.npz: array 'b': float64 [2]: 1 of 2 differ, by at most 0.5, the first at [1]: 1 -> 1.5 "
        "(1 of 2 arrays differ)"
    )
    for side in ("one", "other"):
        (tmp_path / side / "p.npz").unlink()
    said = str(first_difference(tmp_path / "one", tmp_path / "other"))
    assert said.startswith("q.npy: float64 [1]: 1 of 1 differ")


def test_text_by_line_and_bytes_by_offset(tmp_path):
    said = folders(tmp_path, b"a\nb\nc\n", b"a\nB\nc\n", "t.txt")
    assert said == "t.txt: line 2: 'b' -> 'B'"
    large = bytes(3 << 20)
    changed = bytearray(large)
    changed[2_500_000] = 0xFF
    said = folders(tmp_path / "b", large, bytes(changed), "t.bin")
    assert said == "t.bin: byte 2,500,000: 00 -> ff"
    said = folders(tmp_path / "c", b"\0\1", b"\0", "t.bin")
    assert said == "t.bin: byte 1: 01 -> its end, 2 -> 1 bytes long"


def test_files_that_only_one_has(tmp_path):
    assert folders(tmp_path, b"a", b"a", "x") == "None"
    (tmp_path / "other/new").write_bytes(b"")
    assert str(first_difference(tmp_path / "one", tmp_path / "other")) == "new: this file is new"
    assert str(first_difference(tmp_path / "other", tmp_path / "one")) == "new: this file is gone"


def test_a_model_comes_before_the_files_that_tell_of_it(tmp_path):
    save_model(linear(), tmp_path / "one")
    save_model(changed_weight(linear()), tmp_path / "other")
    for side in ("one", "other"):
        (tmp_path / side / "SHA256SUMS").write_text(side)
        (tmp_path / side / "manifest.json").write_text(json.dumps(side))
        (tmp_path / side / "a.txt").write_text(side)
    assert str(first_difference(tmp_path / "one", tmp_path / "other")).startswith("model.onnx: ")


def test_what_can_not_be_read_is_compared_by_byte(tmp_path):
    for name in ("r.json", "p.npz", "q.npy", "model.onnx"):
        said = folders(tmp_path / name, b"\x0f{not", b"\x0f{ not", name)
        assert "it can't be read as what its name says" in said
        assert "byte 2: 6e -> 20, 5 -> 6 bytes long" in said
