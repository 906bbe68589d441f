"""Weights that nodes keep in attributes, sparse weights, and text: each that differs is named with a count."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.differences.artifacts import first_difference
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


def test_a_long_list_of_another_length(sentences):
    one, other = regressor(COEFFICIENTS), regressor(COEFFICIENTS[:30])
    expected = (
        f"attribute 'coefficients' of {ML}.LinearRegressor 'linear': float32 [40] -> float32 [30]"
    )
    assert sentences(one, other) == [expected]


def test_a_long_list_that_is_new(sentences):
    one, other = regressor(COEFFICIENTS), regressor(COEFFICIENTS)
    del one.graph.node[0].attribute[:1]
    expected = f"attribute 'coefficients' of {ML}.LinearRegressor 'linear' is new: float32 [40]"
    assert sentences(one, other) == [expected]


def test_short_lists_are_shown_whole(sentences):
    def turned(*axes):
        node = helper.make_node("Transpose", ["x"], ["y"], name="turn", perm=axes)
        shape = [helper.make_tensor_value_info(n, TensorProto.FLOAT, (3, 3, 3)) for n in "xy"]
        return model([node], inputs=shape[:1], outputs=shape[1:])

    assert sentences(turned(0, 2, 1), turned(1, 2, 0)) == [
        "attribute 'perm' of Transpose 'turn': [0, 2, 1] -> [1, 2, 0]"
    ]


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


def inside(node, **values):
    """The node in a branch of an If."""
    outer = [
        helper.make_tensor_value_info("c", TensorProto.BOOL, ()),
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ("batch", 4)),
    ]
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, ("batch", 10))
    then = helper.make_graph([node], "then", [], [result], **values)
    same = helper.make_node("MatMul", ["x", "k"], ["y"], name="product")
    constant = numpy_helper.from_array(np.ones((4, 10), np.float32), "k")
    other = helper.make_graph([same], "else", [], [result], initializer=[constant])
    branches = helper.make_node("If", ["c"], ["z"], name="if", then_branch=then, else_branch=other)
    return model(
        [branches], inputs=outer, outputs=[helper.make_tensor_value_info("z", TensorProto.FLOAT, ("batch", 10))]
    )  # fmt: skip


def test_a_list_in_a_branch(sentences):
    one = inside(regressor(COEFFICIENTS).graph.node[0])
    other = inside(regressor(with_one(COEFFICIENTS, 30, 0.5)).graph.node[0])
    assert sentences(one, other) == [
        (
            f"in If 'if', then_branch: attribute 'coefficients' of {ML}.LinearRegressor 'linear': "
            "1 of 40 elements differs, by 7 (71.8 % of its largest value)"
        )
    ]


def branches(*nodes):
    """A node of a domain of its own that holds one graph for each of some nodes, in one attribute."""
    result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("batch", 10))]
    graphs = [helper.make_graph([node], "g", [], result) for node in nodes]
    own = helper.make_node("Switch", ["x"], ["y"], name="switch", domain="own", cases=graphs)
    made = model([own])
    made.opset_import.append(helper.make_opsetid("own", 1))
    return made


def test_a_list_of_graphs(sentences):
    node = regressor(COEFFICIENTS).graph.node[0]
    other = regressor(with_one(COEFFICIENTS, 30, 0.5)).graph.node[0]
    assert sentences(branches(node, node), branches(node, other)) == [
        (
            f"in own.Switch 'switch', cases[1]: attribute 'coefficients' of {ML}.LinearRegressor 'linear': "
            "1 of 40 elements differs, by 7 (71.8 % of its largest value)"
        )
    ]
    assert sentences(branches(node), branches(node, other)) == [
        "attribute 'cases[1]' of own.Switch 'switch' is new: a graph of 1 node"
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


def test_a_sparse_weight_that_is_written_in_another_way(sentences):
    one = model([PRODUCT], sparse=[sparse("w", ENTRIES)])
    assert sentences(one, model([PRODUCT], sparse=[sparse("w", ENTRIES, flat=True)])) == []
    with_zero = model([PRODUCT], sparse=[sparse("w", {**ENTRIES, 38: 0.0})])
    assert sentences(one, with_zero) == []
    constant = helper.make_node("Constant", [], ["w"], sparse_value=sparse("", ENTRIES))
    assert sentences(one, model([constant, PRODUCT])) == []


def test_a_sparse_weight_that_is_dense_now(sentences):
    dense = np.zeros((4, 10), np.float32)
    dense.flat[list(ENTRIES)] = list(ENTRIES.values())
    other = model([PRODUCT])
    other.graph.initializer.append(numpy_helper.from_array(dense, "w"))
    assert sentences(model([PRODUCT], sparse=[sparse("w", ENTRIES)]), other) == [
        "weight 'w' of MatMul 'product': sparse float32 [4, 10] -> float32 [4, 10]"
    ]


def test_a_sparse_weight_in_a_branch(sentences):
    one = inside(PRODUCT, sparse_initializer=[sparse("w", ENTRIES)])
    other = inside(PRODUCT, sparse_initializer=[sparse("w", {**ENTRIES, 11: 4.0})])
    assert sentences(one, other) == [
        (
            "in If 'if', then_branch: weight 'w' of MatMul 'product': 1 of 40 elements differs, by 2 "
            "(25 % of its largest value)"
        )
    ]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda t: t.indices.dims.append(1), "index|indices|reshape|damaged"),
        (lambda t: t.dims.__setitem__(0, 1), "damaged"),
        (lambda t: t.values.dims.__setitem__(0, 2), "damaged"),
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


def test_a_weight_that_is_an_output(sentences):
    def constant(*values):
        made = model([helper.make_node("Relu", ["x"], ["y"], name="relu")])
        made.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 4
        made.graph.initializer.append(numpy_helper.from_array(np.array(values, np.float32), "k"))
        made.graph.output.append(helper.make_tensor_value_info("k", TensorProto.FLOAT, (2,)))
        return made

    assert sentences(constant(1, 2), constant(1, 3)) == [
        "weight 'k' of output 'k': 1 of 2 elements differs, by 1 (50 % of its largest value)"
    ]


def test_long_texts_with_one_beginning_are_shown_where_they_part(sentences):
    def parsed(text):
        node = helper.make_node("Parse", ["x"], ["y"], name="parse", domain="own", grammar=text)
        made = model([node])
        made.opset_import.append(helper.make_opsetid("own", 1))
        return made

    text = "a long grammar, " * 40
    assert sentences(parsed(f"{text}one"), parsed(f"{text}two")) == [
        "attribute 'grammar' of own.Parse 'parse': from 640 on 'one' -> from 640 on 'two'"
    ]
    assert sentences(parsed("one"), parsed("two")) == [
        "attribute 'grammar' of own.Parse 'parse': one -> two"
    ]


def test_a_sparse_model_is_one_that_runs(tmp_path):
    """So the models of these tests are such as users have."""
    path = tmp_path / "sparse.onnx"
    onnx.save(model([PRODUCT], sparse=[sparse("w", ENTRIES)]), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": np.ones((1, 4), np.float32)})
    assert found.tolist() == [[0, 2, 1, 0, 0, 0, 0, 8, 0, 0]]


def test_reproduce_says_which_number_of_a_list_differs(tmp_path):
    for name, coefficients in (("a", COEFFICIENTS), ("b", with_one(COEFFICIENTS, 30, 0.5))):
        (tmp_path / name).mkdir()
        onnx.save(regressor(coefficients), tmp_path / name / "model.onnx")
    assert str(first_difference(tmp_path / "a", tmp_path / "b")) == (
        "model.onnx: node 0, LinearRegressor 'linear': attribute 'coefficients': float32 [40]: 1 of 40 "
        "differ, by at most 7, the first at [30]: 7.5 -> 0.5"
    )
