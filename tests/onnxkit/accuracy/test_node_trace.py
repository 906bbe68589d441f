"""Two models side by side: where an error comes in, and what each node alone does."""

import itertools
import math

import numpy as np
import pytest
from onnx import TensorProto, helper

from onnxbuild.adapters.machine import host_facts
from onnxbuild.diagnosis.remedies import suspects
from onnxbuild.mode_steps.auto_options import without_auto
from onnxbuild.onnxkit.accuracy.isolated_node_error import (
    DominantNode,
    find_dominant_node,
    output_effects,
)
from onnxbuild.onnxkit.accuracy.node_trace import (
    changed_nodes,
    edited_weights,
    retyped_weights,
    trace,
)
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.steps.quantize_dynamic import KIND, DynamicOptions, DynamicParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import model, value, weight
from tests.onnxkit.quantize.test_eight_bit_forms import static
from tests.onnxkit.single_operators import Single, normal
from tests.steps.graphs import save

SIZE = 8
MATRIX = np.random.default_rng(0).standard_normal((3, SIZE, SIZE)).astype(np.float32)
X = np.random.default_rng(1).standard_normal((4, SIZE)).astype(np.float32)


def chain(folder, *, noise=(0, 0, 0)):
    """y = Tanh(x @ w0) @ w1 @ w2; `noise` is added to one element of each matrix."""
    weights = MATRIX.copy()
    weights[:, 0, 0] += np.asarray(noise, np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"], name="first"),
        helper.make_node("Tanh", ["a"], ["b"], name="tanh"),
        helper.make_node("MatMul", ["b", "w1"], ["c"], name="second"),
        helper.make_node("MatMul", ["c", "w2"], ["y"], name="third"),
    ]
    made = model(
        nodes,
        [value("x", ["n", SIZE])],
        [value("y", ["n", SIZE])],
        [weight(f"w{n}", each) for n, each in enumerate(weights)],
    )
    save_model(made, folder)
    return folder


def feeds():
    yield {"x": X}
    yield {"x": X[:1]}


def test_the_error_appears_at_the_node_that_makes_it(tmp_path):
    exact, wrong = chain(tmp_path / "1"), chain(tmp_path / "2", noise=(0, 0.5, 0))
    nodes = trace(exact, wrong, feeds)
    assert [each.name for each in nodes] == ["first", "tanh", "second", "third"]
    assert [each.after == 0 for each in nodes] == [True, True, False, False]
    assert nodes[2].before == 0
    assert nodes[3].before == nodes[2].after
    assert max(nodes, key=lambda each: each.added).name in ("second", "third")


def test_a_value_that_overflows_is_reported_by_name_and_the_next_is_not_blamed(tmp_path):
    def made(folder, factor):
        nodes = [
            helper.make_node("Mul", ["x", "factor"], ["large"], name="grow"),
            helper.make_node("Mul", ["large", "factor"], ["y"], name="more"),
        ]
        large = model(
            nodes,
            [value("x", ["n", SIZE])],
            [value("y", ["n", SIZE])],
            [weight("factor", np.float32(factor))],
        )
        save_model(large, folder)
        return folder

    nodes = trace(made(tmp_path / "1", 10), made(tmp_path / "2", np.inf), feeds)
    assert nodes[0].lost == f"{X.size + SIZE} inf"
    assert [each.added for each in nodes] == [math.inf, 0.0]


def test_a_node_of_another_kind_or_type_is_changed(tmp_path):
    exact = chain(tmp_path / "1")
    nodes = [
        helper.make_node("Cast", ["x"], ["x16"], name="down", to=TensorProto.FLOAT16),
        helper.make_node("MatMul", ["x16", "w0"], ["a"], name="first"),
        helper.make_node("Cast", ["a"], ["a32"], name="up", to=TensorProto.FLOAT),
        helper.make_node("Tanh", ["a32"], ["b"], name="tanh"),
        helper.make_node("MatMul", ["b", "w1"], ["c"], name="second"),
        helper.make_node("Gemm", ["c", "w2"], ["y"], name="third"),
    ]
    weights = [MATRIX[0].astype(np.float16), MATRIX[1], MATRIX[2]]
    made = model(
        nodes,
        [value("x", ["n", SIZE])],
        [value("y", ["n", SIZE])],
        [weight(f"w{n}", each) for n, each in enumerate(weights)],
    )
    save_model(made, tmp_path / "2")
    found = trace(exact, tmp_path / "2", feeds)
    changed = {each.name: each.changed for each in found}
    assert changed == {"first": True, "tanh": True, "second": False, "third": True}


def test_what_a_node_alone_does_is_what_the_model_with_only_it_changed_does(tmp_path):
    exact, wrong = chain(tmp_path / "1"), chain(tmp_path / "2", noise=(0.3, 0.2, 0.1))
    found = output_effects(exact, wrong, ("first", "second", "third"), {"x": X})
    assert set(found) == {"first", "second", "third"}
    for n, name in enumerate(found):
        only = chain(tmp_path / name, noise=[0.3 * (n == 0), 0.2 * (n == 1), 0.1 * (n == 2)])
        last = trace(exact, only, lambda: [{"x": X}])[-1]
        assert found[name] == pytest.approx(last.after, rel=1e-3)


def test_a_relu_left_to_the_quantizers_clipping_is_seen_as_its_readers_see_it(tmp_path):
    def made(folder, nodes):
        io = [value("x", ["n", SIZE])], [value("y", ["n", SIZE])]
        weights = [weight("w0", MATRIX[0]), weight("w1", MATRIX[1])]
        low = [weight("scale", np.float32(0.05)), weight("zero", np.uint8(0))]
        save_model(model(nodes, *io, [*weights, *low]), folder)
        return folder

    last = ["w1"], ["y"]
    exact = made(
        tmp_path / "1",
        [
            helper.make_node("MatMul", ["x", "w0"], ["a"], name="first"),
            helper.make_node("Relu", ["a"], ["b"], name="clip"),
            helper.make_node("MatMul", ["b", *last[0]], last[1], name="second"),
        ],
    )
    quantized = made(
        tmp_path / "2",
        [
            helper.make_node("MatMul", ["x", "w0"], ["b"], name="first"),
            helper.make_node("QuantizeLinear", ["b", "scale", "zero"], ["q"], name="q"),
            helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["dq"], name="dq"),
            helper.make_node("MatMul", ["dq", *last[0]], last[1], name="second"),
        ],
    )
    clip, second = trace(exact, quantized, feeds)
    assert (clip.name, second.name) == ("clip", "second")
    assert 30 < clip.after_db < 60
    assert clip.changed
    found = output_effects(exact, quantized, ("clip", "second"), {"x": X})
    assert found["second"] == pytest.approx(0, abs=1e-12)
    whole = trace(exact, quantized, lambda: [{"x": X}])[-1].after
    assert found["clip"] == pytest.approx(whole, rel=1e-3)


def branching(folder, *, noise=0.0, op="Tanh"):
    """y = Tanh(x @ w0) @ w1 if all is well, in the body of an If."""
    weights = MATRIX.copy()
    weights[1, 0, 0] += noise
    then = helper.make_graph(
        [
            helper.make_node(op, ["a"], ["b"], name="inner_tanh"),
            helper.make_node("MatMul", ["b", "w1"], ["c"], name="inner"),
        ],
        "then",
        [],
        [value("c", ["n", SIZE])],
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["a"], ["d"], name="inner_identity")],
        "else",
        [],
        [value("d", ["n", SIZE])],
    )
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["a"], name="first"),
        helper.make_node("If", ["yes"], ["y"], name="choice", then_branch=then, else_branch=other),
    ]
    made = model(
        nodes,
        [value("x", ["n", SIZE])],
        [value("y", ["n", SIZE])],
        [
            *(weight(f"w{n}", each) for n, each in enumerate(weights)),
            weight("yes", np.array(True)),
        ],
    )
    save_model(made, folder)
    return folder


def test_nodes_in_a_body_are_counted_and_the_node_that_runs_it_stands_for_them(tmp_path):
    exact = branching(tmp_path / "1")
    first, choice = trace(exact, branching(tmp_path / "2", noise=0.5), feeds)
    assert (first.name, first.after, first.bodies) == ("first", 0.0, 0)
    assert (choice.name, choice.bodies, choice.inside) == ("choice", 3, ("inner",))
    assert choice.added > 0
    _, choice = trace(exact, branching(tmp_path / "3", op="Sigmoid"), feeds)
    assert choice.changed
    assert choice.inside == ("inner_tanh",)
    assert suspects((first, choice), {}) == (("inner_tanh", "choice"),)


TABLE = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)


def made(folder, *, table=TABLE, bias=0.0, cast=False, op="Tanh", external="auto"):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="multiply"),
        helper.make_node("Add", ["a", "b"], ["c"], name="add"),
        helper.make_node(op, ["c"], ["y"], name="last"),
    ]
    weights = [weight("w", table), weight("b", np.full(4, bias, np.float32))]
    if cast:
        weights[0].name = "w_half"
        nodes.insert(
            0, helper.make_node("Cast", ["w_half"], ["w"], name="cast", to=TensorProto.FLOAT)
        )
    io = [value("x", ["n", 4])], [value("y", ["n", 4])]
    save_model(model(nodes, *io, weights), folder, external=external)
    return folder


@pytest.mark.parametrize("external", ["auto", "always"])
def test_a_weight_with_one_other_element_is_edited(tmp_path, external):
    one, same, other = (tmp_path / name for name in ("one", "same", "other"))
    table = TABLE.copy()
    table[3, 3] += 1e-6
    made(one, external=external)
    made(same, external="always")
    made(other, table=table, external=external)
    assert edited_weights(one, same) == set()
    assert edited_weights(one, other) == {"w"}
    assert changed_nodes(one, same) == set()
    assert changed_nodes(one, other) == {"multiply"}


def test_a_weight_of_another_type_or_that_a_node_makes_is_retyped(tmp_path):
    before = made(tmp_path / "before")
    for name, options in (("half", {"table": TABLE.astype(np.float16)}), ("cast", {"cast": True})):
        after = made(tmp_path / name, **options)
        assert retyped_weights(load_model(before), load_model(after)) == {"w"}
        assert changed_nodes(before, after) == {"multiply"}


def test_a_corrected_bias_is_no_change_where_other_nodes_are_changed(tmp_path):
    before = made(tmp_path / "before")
    after = made(tmp_path / "after", bias=0.5, op="Sigmoid")
    assert edited_weights(before, after) == {"b"}
    assert changed_nodes(before, after) == {"last"}


WIDTH = 32
FEEDS = {"x": normal(4, WIDTH)}


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as a child runs a step


def chain_of_products(outlier):
    """Four products in a row; one channel of the second's input is `outlier` times the others.

    The second does not use that channel, but its scale in 8 bits is set by it.
    """
    names = ["first", "second", "third", "fourth"]
    matrices = {name: normal(WIDTH, WIDTH, scale=(n + 3) / 20) for n, name in enumerate(names)}
    matrices["first"][:, 5] *= outlier
    matrices["second"][5] = 0 if outlier > 1 else matrices["second"][5]
    values = ["x", "a", "b", "c", "y"]
    nodes = [
        helper.make_node("MatMul", [values[n], f"{name}/weight"], [values[n + 1]], name=name)
        for n, name in enumerate(names)
    ]
    weights = [weight(f"{name}/weight", matrix) for name, matrix in matrices.items()]
    shape = ["batch", WIDTH]
    return model(nodes, [value("x", shape)], [value("y", shape)], weights)


def quantized(made, folder, **options):
    source = save(made, folder / "source")
    params = DynamicParams(without_auto(DynamicOptions(**options), host_facts()))
    _, context = run_step(KIND, params, folder / "step", {"model": source})
    return source, context.output("model")


def test_the_node_that_makes_most_of_the_error_is_named(tmp_path):
    source, target = quantized(chain_of_products(1000), tmp_path)
    found = find_dominant_node(source, target, FEEDS, tmp_path)
    assert found is not None
    assert (found.name, found.op_type) == ("second", "MatMul")
    assert found.share > 0.9


def test_with_the_node_in_fp32_none_is_named_any_more(tmp_path):
    source, target = quantized(chain_of_products(1000), tmp_path, nodes_to_exclude=("second",))
    assert find_dominant_node(source, target, FEEDS, tmp_path) is None


def test_of_a_static_variant_what_reads_the_value_is_named_too_and_leaving_both_mends_it(tmp_path):
    found = {}
    for excluded in ((), ("first",), ("first", "second")):
        folder = tmp_path / "-".join(["static", *excluded])
        folder.mkdir()
        _, sqnr = static(Single(chain_of_products(1000), FEEDS), folder, nodes_to_exclude=excluded)
        target = folder / "step/out/model"
        dominant = find_dominant_node(folder / "source", target, FEEDS, folder)
        found[excluded] = sqnr, dominant
    sqnr, dominant = found[()]
    assert sqnr < 3
    assert (dominant.name, dominant.readers) == ("first", ("second",))
    assert "leave it and what reads it in fp32" in dominant.note("int8", 0.5, ())
    assert '["*/head", "first", "second"]' in dominant.note("int8", 0.5, ("*/head", "first"))
    assert found[("first",)][0] < 3
    assert found[("first", "second")][0] > 30


def test_a_model_of_many_quantized_nodes_is_left_to_diagnose(tmp_path):
    """One dominates as above, of 129 nodes; each would take two runs."""
    made = chain_of_products(1000)
    made.graph.output[0].name = "end"
    made.graph.initializer.append(weight("e", np.eye(WIDTH, dtype=np.float32)))
    names = ["y", *(f"v{n}" for n in range(124)), "end"]
    for before, after in itertools.pairwise(names):
        made.graph.node.append(helper.make_node("MatMul", [before, "e"], [after], name=after))
    source, target = quantized(made, tmp_path)
    assert find_dominant_node(source, target, FEEDS, tmp_path) is None
    made.graph.node.pop()
    made.graph.output[0].name = names[-2]
    source, target = quantized(made, tmp_path / "fewer")
    (tmp_path / "work").mkdir()
    found = find_dominant_node(source, target, FEEDS, tmp_path / "work")
    assert found is not None
    assert found.name == "second"


def test_the_note_has_the_yaml_to_write():
    node = DominantNode("a/MatMul", "MatMul", 0.987)
    assert node.note("int8", 0.5, ["*/head"]) == (
        "MatMul node 'a/MatMul' alone makes 98.7 % of the error of variant 'int8' (worst cosine "
        '0.5000): leave it in fp32 with `nodes_to_exclude: ["*/head", "a/MatMul"]`'
    )
    assert "99.9 %" in DominantNode("n", "Gemm", 1.0).note("int8", math.nan, ())
    assert np.isfinite(FEEDS["x"]).all()
