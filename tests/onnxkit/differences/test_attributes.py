"""Weights that nodes keep in attributes, sparse weights, and text: each that differs is named with a count."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.differences.models import compare_models
from onnxbuild.onnxkit.differences.sentences import say

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
