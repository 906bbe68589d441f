"""Two models compared: each difference is one sentence, whatever nodes and values are called."""

import itertools
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.core.errors import BuildError, StepError, UsageError
from onnxbuild.onnxkit.differences.models import compare_models
from onnxbuild.onnxkit.differences.sentences import say

BATCH = ("batch", 4)


def weight(name, *shape, seed=0):
    values = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    return numpy_helper.from_array(values, name)


def value(name, shape=BATCH, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, weights=(), *, inputs=None, outputs=None, opset=18, functions=(), domains=()):
    graph = helper.make_graph(
        nodes, "g", inputs or [value("x")], outputs or [value("y")], initializer=list(weights)
    )
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions))


def network(count=3, *, opset=18):
    """Gemm, Relu, Gemm, Relu, ..., Gemm: each with weights of its own."""
    nodes, weights, last = [], [], "x"
    for n in range(count):
        weights += [weight(f"w{n}", 4, 4, seed=n), weight(f"b{n}", 4, seed=n + 100)]
        end = "y" if n == count - 1 else f"g{n}"
        nodes.append(helper.make_node("Gemm", [last, f"w{n}", f"b{n}"], [end], name=f"gemm{n}"))
        last = end
        if n < count - 1:
            nodes.append(helper.make_node("Relu", [last], [f"r{n}"], name=f"relu{n}"))
            last = f"r{n}"
    return model(nodes, weights, opset=opset)


def insert_after(changed, name, node):
    """Put a node that reads `node.input[0]` before all that read it until then."""
    at = next(n for n, each in enumerate(changed.graph.node) if each.name == name) + 1
    for each in changed.graph.node[at:]:
        for slot, read in enumerate(each.input):
            if read == node.input[0]:
                each.input[slot] = node.output[0]
    changed.graph.node.insert(at, node)
    return changed


def renamed(changed):
    """Number all nodes and values anew, as an exporter does when one node more is there."""
    kept = {v.name for v in (*changed.graph.input, *changed.graph.output)}
    names, numbers = {"": ""}, itertools.count(7)
    for each in changed.graph.node:
        for field in (each.input, each.output):
            for slot, name in enumerate(field):
                if name not in kept:
                    names.setdefault(name, f"val_{next(numbers)}")
                    field[slot] = names[name]
        each.name = f"node_{next(numbers)}"
    for tensor in changed.graph.initializer:
        tensor.name = names[tensor.name]
    return changed


@pytest.fixture
def sentences(tmp_path):
    """Returns what is said of two models."""
    numbers = itertools.count()

    def compared(one, other):
        paths = []
        for each in (one, other):
            folder = tmp_path / str(next(numbers))
            folder.mkdir()
            onnx.checker.check_model(each)
            onnx.save(each, folder / "model.onnx")
            paths.append(folder / "model.onnx")
        return [each.sentence for each in say(compare_models(*paths))]

    return compared


def changed_weight(changed, name, index, add):
    (tensor,) = (t for t in changed.graph.initializer if t.name == name)
    array = numpy_helper.to_array(tensor).copy()
    array[index] += add
    tensor.CopyFrom(numpy_helper.from_array(array, name))
    return changed


def test_equal_models_give_no_sentence(sentences):
    assert sentences(network(), network()) == []


def test_other_names_are_no_difference(sentences):
    assert sentences(network(5), renamed(network(5))) == []


def test_one_weight(sentences):
    other = changed_weight(network(), "w1", (2, 3), 0.5)
    (said,) = sentences(network(), other)
    assert said == (
        "weight 'w1' of Gemm 'gemm1': 1 of 16 elements differs, by 0.5 (38.4 % of its largest value)"
    )


def test_one_attribute(sentences):
    other = network()
    other.graph.node[2].attribute.append(helper.make_attribute("alpha", 0.5))
    assert sentences(network(), other) == ["attribute 'alpha' of Gemm 'gemm1' is new: 0.5"]
    third = network()
    third.graph.node[2].attribute.append(helper.make_attribute("alpha", 0.25))
    assert sentences(other, third) == ["attribute 'alpha' of Gemm 'gemm1': 0.5 -> 0.25"]


def test_one_opset(sentences):
    assert sentences(network(), network(opset=19)) == ["opset: 18 -> 19"]


@pytest.mark.parametrize("rename", [renamed, lambda each: each], ids=["renamed", "as it is"])
def test_one_node_more_is_one_sentence_and_no_cascade_of_renames(sentences, rename):
    node = helper.make_node("Tanh", ["r0"], ["t"], name="tanh")
    other = rename(insert_after(network(6), "relu0", node))
    (said,) = sentences(network(6), other)
    assert said.startswith("1 node is new: Tanh '")
    assert ", between Relu '" in said


def test_one_node_replaced(sentences):
    other = network()
    other.graph.node[1].op_type = "LeakyRelu"
    assert sentences(network(), other) == [
        "Relu 'relu0' is now LeakyRelu 'relu0', between Gemm 'gemm0' and Gemm 'gemm1'"
    ]


def gelu(*, fused):
    """Gemm, then GELU as one node or as five, then Gemm."""
    scalars = [
        numpy_helper.from_array(np.float32(n), name)
        for name, n in (("s", 1.414), ("o", 1), ("h", 0.5))
    ]
    whole = [helper.make_node("Gelu", ["a"], ["m"], name="gelu")]
    parts = [
        helper.make_node("Div", ["a", "s"], ["d"], name="div"),
        helper.make_node("Erf", ["d"], ["e"], name="erf"),
        helper.make_node("Add", ["e", "o"], ["p"], name="add"),
        helper.make_node("Mul", ["a", "p"], ["q"], name="mul0"),
        helper.make_node("Mul", ["q", "h"], ["m"], name="mul1"),
    ]
    nodes = [
        helper.make_node("Gemm", ["x", "w0"], ["a"], name="gemm0"),
        *(whole if fused else parts),
        helper.make_node("Gemm", ["m", "w1"], ["y"], name="gemm1"),
    ]
    weights = [weight("w0", 4, 4), weight("w1", 4, 4, seed=1), *([] if fused else scalars)]
    return model(nodes, weights, opset=20)


def test_one_fused_node(sentences):
    assert sentences(gelu(fused=False), gelu(fused=True)) == [
        (
            "5 nodes were fused into one, Gelu 'gelu': Div, Erf, Add, Mul, Mul, between Gemm 'gemm0' and "
            "Gemm 'gemm1'"
        )
    ]
    assert sentences(gelu(fused=True), gelu(fused=False)) == [
        "Gelu 'gelu' is now 5 nodes: Div, Erf, Add, Mul, Mul, between Gemm 'gemm0' and Gemm 'gemm1'"
    ]


def normed(*, folded):
    """Conv and BatchNormalization, or a Conv that has taken it in."""
    shape = ["batch", 3, 8, 8]
    nodes = [helper.make_node("Conv", ["x", "w", *(["b"] if folded else [])], ["c"], name="conv")]
    weights = [weight("w", 3, 3, 1, 1, seed=9 if folded else 0)]
    if folded:
        weights.append(weight("b", 3))
    else:
        names = ["scale", "bias", "mean", "var"]
        weights += [numpy_helper.from_array(np.ones(3, np.float32), name) for name in names]
        nodes.append(helper.make_node("BatchNormalization", ["c", *names], ["n"], name="norm"))
    nodes.append(helper.make_node("Relu", ["c" if folded else "n"], ["y"], name="relu"))
    return model(nodes, weights, inputs=[value("x", shape)], outputs=[value("y", shape)])


def test_a_normalization_that_is_folded_in(sentences):
    said = sentences(normed(folded=False), normed(folded=True))
    assert said[0] == (
        "BatchNormalization 'norm' was folded into Conv 'conv', whose weights changed"
    )
    assert said[1] == "weight 'b' of Conv 'conv' is new: float32 [3]"
    assert said[2].startswith("weight 'w' of Conv 'conv': 9 of 9 elements differ, by at most ")
    assert len(said) == 3


def test_another_type_of_all_weights_is_one_sentence(sentences):
    def cast(n):
        return helper.make_node("Cast", [f"h{n}"], [f"w{n}"], to=TensorProto.FLOAT, name=f"c{n}")

    def halves(dtype):
        weights = [numpy_helper.from_array(np.ones((4, 4), dtype), f"h{n}") for n in range(5)]
        nodes = [cast(n) for n in range(5)]
        nodes.append(helper.make_node("Sum", [f"w{n}" for n in range(5)], ["s"], name="sum"))
        nodes.append(helper.make_node("MatMul", ["x", "s"], ["y"], name="m"))
        return model(nodes, weights)

    said = sentences(halves(np.float16), halves(np.float64))
    assert said == ["5 weights are float64 instead of float16, first 'h0'"]


def test_the_signature(sentences):
    other = network()
    other.graph.output[0].CopyFrom(value("y", (1, 4)))
    assert sentences(network(), other) == ["output 'y': float32 [batch, 4] -> float32 [1, 4]"]
    third = network()
    third.graph.input.append(value("mask", ("batch",), TensorProto.INT64))
    assert sentences(network(), third) == ["input 'mask' is new: int64 [batch]"]
    fourth = network()
    fourth.graph.input[0].name = "image"
    fourth.graph.node[0].input[0] = "image"
    assert sentences(network(), fourth) == [
        "input 'x' is gone; it was float32 [batch, 4]",
        "input 'image' is new: float32 [batch, 4]",
    ]


def test_a_node_that_reads_another_value(sentences):
    other = network(4)
    other.graph.node[4].input[0] = "r0"
    assert sentences(network(4), other)[-1] == (
        "input 0 of Gemm 'gemm2' comes from Relu 'relu0' instead of Relu 'relu1'"
    )


def branch(add):
    """If: x + a constant, or x."""
    outputs = [value("o")]
    inner = [helper.make_node("Add", ["x", "k"], ["o"], name="plus")]
    constant = numpy_helper.from_array(np.full(4, add, np.float32), "k")
    then = helper.make_graph(inner, "then", [], outputs, initializer=[constant])
    same = [helper.make_node("Identity", ["x"], ["o"], name="same")]
    other = helper.make_graph(same, "else", [], outputs)
    node = helper.make_node("If", ["c"], ["y"], name="if", then_branch=then, else_branch=other)
    return model([node], inputs=[value("x"), value("c", (), TensorProto.BOOL)])


def test_a_weight_within_a_branch(sentences):
    assert sentences(branch(1), branch(3)) == [
        (
            "in If 'if', then_branch: weight 'k' of Add 'plus': 4 of 4 elements differ, by at most 2 "
            "(200 % of its largest value)"
        )
    ]


@pytest.mark.parametrize("weights", ["weights.bin", "parts/weights.bin"])
def test_weights_in_a_file_of_their_own_are_compared(tmp_path, weights):
    paths = []
    for number, each in enumerate((network(), changed_weight(network(), "w0", (0, 0), 2))):
        path = tmp_path / str(number) / "model.onnx"
        (path.parent / weights).parent.mkdir(parents=True)
        onnx.save(each, path, save_as_external_data=True, location=weights, size_threshold=0)
        paths.append(path)
    (said,) = say(compare_models(*paths))
    assert said.sentence.startswith("weight 'w0' of Gemm 'gemm0': 1 of 16 elements differs, by 2 ")
    assert compare_models(paths[0], paths[0]).same_bytes
    inside = tmp_path / "inside.onnx"
    onnx.save(network(), inside)
    assert say(compare_models(paths[0], inside)) == []
    (paths[0].parent / weights).unlink()
    with pytest.raises(StepError, match="which is not there"):
        compare_models(*paths)


def test_what_is_no_model_is_refused(tmp_path):
    path, good = tmp_path / "bad.onnx", tmp_path / "good.onnx"
    path.write_bytes(b"")
    onnx.save(network(), good)
    with pytest.raises((StepError, UsageError), match="is not an ONNX model"):
        compare_models(path, good)
    with pytest.raises(BuildError):
        compare_models(good, Path(tmp_path / "missing.onnx"))


def test_a_damaged_model_is_refused_or_compared_and_nothing_else(tmp_path):
    good, bad = tmp_path / "good.onnx", tmp_path / "bad.onnx"
    onnx.save(network(), good)
    content = good.read_bytes()
    refused = compared = 0
    random = np.random.default_rng(3)
    for _ in range(400):
        changed = bytearray(content)
        for place in random.integers(len(content), size=2):
            changed[place] = random.integers(256)
        bad.write_bytes(changed)
        try:
            say(compare_models(good, bad))
            compared += 1
        except BuildError:
            refused += 1
    assert min(refused, compared) > 40


@pytest.mark.slow
def test_a_whole_other_model_takes_seconds_too(tmp_path):
    """Nothing but operators in common."""
    one, other = network(3001), network(3001)
    for n, each in enumerate(other.graph.node):
        if each.op_type == "Relu":
            each.op_type = ("Tanh", "Sigmoid", "Elu")[n % 3]
    for n in range(3001):
        changed_weight(other, f"w{n}", (0, 0), 1) if n % 1000 == 0 else None
    onnx.save(one, tmp_path / "one.onnx")
    onnx.save(renamed(other), tmp_path / "other.onnx")
    start = time.process_time()
    said = say(compare_models(tmp_path / "one.onnx", tmp_path / "other.onnx"))
    assert time.process_time() - start < 20
    assert [each.sentence.partition(":")[0] for each in said[:3]] == ["1000 times"] * 3


def tangle(seed):
    """A random graph of operators that are hard to tell apart: alike, shared, with few weights."""
    random = np.random.default_rng(seed)
    values, nodes, weights = ["x"], [], []
    for n in range(random.integers(3, 25)):
        near = values[random.integers(max(0, len(values) - 4), len(values))]
        other = values[random.integers(len(values))]
        kind = ("Relu", "Add", "Mul", "MatMul")[random.integers(4)]
        reads = {"Relu": [near], "MatMul": [near, f"w{n}"]}.get(kind, [near, other])
        if kind == "MatMul":
            weights.append(weight(f"w{n}", 4, 4, seed=int(seed * 100 + n)))
        nodes.append(helper.make_node(kind, reads, [f"v{n}"], name=f"n{n}"))
        values.append(f"v{n}")
    read = {name for node in nodes for name in node.input}
    return model(nodes, weights, outputs=[value(v) for v in values[1:] if v not in read])


def test_random_graphs_with_one_node_more(tmp_path):
    """Names never matter; what is new, less what is gone, is that node; nearly always nothing else is named."""
    told_alone = tried = 0

    def said(one, other):
        paths = tmp_path / "one.onnx", tmp_path / "other.onnx"
        for each, path in zip((one, other), paths, strict=True):
            onnx.save(each, path)
        return say(compare_models(*paths))

    for seed in range(100):
        assert said(tangle(seed), renamed(tangle(seed))) == []
        inner = [
            n
            for n in tangle(seed).graph.node
            if n.output[0] not in {v.name for v in tangle(seed).graph.output}
        ]
        if not inner:
            continue
        place = inner[seed % len(inner)]
        node = helper.make_node("Tanh", [place.output[0]], ["t"], name="tanh")
        found = said(tangle(seed), renamed(insert_after(tangle(seed), place.name, node)))
        nodes = [each.data for each in found if each.data["kind"] == "nodes"]
        new = [name for each in nodes for name in each["new"] * each["times"]]
        for each in nodes:
            for name in each["gone"] * each["times"]:
                new.remove(name)
        assert new == ["Tanh"]
        told_alone += len(found) == 1
        tried += 1
    assert told_alone >= 0.95 * tried
