"""Attention over a cache as one node: which graphs it is made of, and that they compute the same, in place too."""

from itertools import product

import numpy as np
import pytest
from onnx import checker, helper

from onnxbuild.core.axis import Axis, Point
from onnxbuild.core.recipe import DummyInput
from onnxbuild.core.state import Growth
from onnxbuild.onnxkit.data.states import decoding_points
from onnxbuild.onnxkit.model.graphs import all_nodes
from onnxbuild.onnxkit.model.model_files import load_model, save_model
from onnxbuild.onnxkit.optimize.cached_attention import fuse_caches
from onnxbuild.onnxkit.optimize.held_constants import HeldConstants
from onnxbuild.onnxkit.sessions.decoding import StatefulRun, run_in_place
from onnxbuild.onnxkit.sessions.open import open_session
from onnxbuild.onnxkit.sessions.run import run_session
from tests.onnxkit.models import model, value, weight

HEADS, KEPT, SIZE = 4, 2, 8
AXES = (Axis("batch", 1, 4, 2), Axis("sequence", 1, 8, 3), Axis("past", 0, 16, 5))
POINTS = (
    Point("one", {"batch": 2, "sequence": 3, "past": 5}),
    Point("other", {"batch": 3, "sequence": 4, "past": 7}),
    Point("first", {"batch": 2, "sequence": 3, "past": 0}),
)


def inputs(*, in_place=False, bias_heads=1):
    cache = ("batch", KEPT, "past", SIZE)
    growth = Growth("past", "sequence", in_place)
    return (
        DummyInput("q", "float32", ("batch", HEADS, "sequence", SIZE)),
        DummyInput("k", "float32", ("batch", KEPT, "sequence", SIZE)),
        DummyInput("v", "float32", ("batch", KEPT, "sequence", SIZE)),
        DummyInput("bias", "float32", ("batch", bias_heads, "sequence", "past + sequence")),
        DummyInput("past.k", "float32", cache, fed_by="new.k", growth=growth),
        DummyInput("past.v", "float32", cache, fed_by="new.v", growth=growth),
    )


def node(operator, given, made, **attributes):
    return helper.make_node(operator, given, made, name=made[0], **attributes)


def repeated(name):
    """Each head twice, as transformers repeats them: the sizes are computed from the cache's own shape."""
    return [
        node("Shape", [f"new.{name}"], [f"{name}/shape"]),
        node("Gather", [f"{name}/shape", "zero"], [f"{name}/batch"]),
        node("Gather", [f"{name}/shape", "two"], [f"{name}/length"]),
        node("Concat", [f"{name}/batch", "kept", "times", f"{name}/length", "size"], [f"{name}/wide"], axis=0),
        node("Concat", [f"{name}/batch", "heads", f"{name}/length", "size"], [f"{name}/flat"], axis=0),
        node("Unsqueeze", [f"new.{name}", "two"], [f"{name}/5d"]),
        node("Expand", [f"{name}/5d", f"{name}/wide"], [f"{name}/expanded"]),
        node("Reshape", [f"{name}/expanded", f"{name}/flat"], [f"{name}/all"]),
    ]  # fmt: skip


def attention(*, guarded=True, opset=18, more=(), outputs=()):
    """Scaled dot-product attention over a cache, spelt out as exporters do it."""
    nodes = [
        node("Concat", ["past.k", "k"], ["new.k"], axis=-2),
        node("Concat", ["past.v", "v"], ["new.v"], axis=-2),
        *repeated("k"),
        *repeated("v"),
        node("Transpose", ["k/all"], ["k/turned"], perm=[0, 1, 3, 2]),
        node("Mul", ["k/turned", "scale"], ["k/scaled"]),
        node("Mul", ["q", "scale"], ["q/scaled"]),
        node("MatMul", ["q/scaled", "k/scaled"], ["scores"]),
        node("Add", ["scores", "bias"], ["biased"]),
        node("Softmax", ["biased"], ["weights"], axis=-1),
    ]
    last = "weights"
    if guarded:
        nodes += [
            node("IsNaN", ["weights"], ["nan"]),
            node("Where", ["nan", "none", "weights"], ["finite"]),
        ]
        last = "finite"
    nodes += [node("MatMul", [last, "v/all"], ["y"]), *more]
    return graph(nodes, opset, outputs)


def by_operator():
    """The same as ONNX's own node of opset 23, with a mask of bools."""
    nodes = [
        node("Concat", ["past.k", "k"], ["new.k"], axis=-2),
        node("Concat", ["past.v", "v"], ["new.v"], axis=-2),
        *repeated("k"),
        *repeated("v"),
        node("GreaterOrEqual", ["bias", "none"], ["mask"]),
        node("Attention", ["q", "k/all", "v/all", "mask"], ["y"]),
    ]
    return graph(nodes, 23, ())


def graph(nodes, opset, outputs):
    axes = [value(each.name, each.shape) for each in inputs()]
    made = [value("y", ["batch", HEADS, "sequence", SIZE])]
    made += [value(f"new.{n}", ["batch", KEPT, "past + sequence", SIZE]) for n in "kv"]
    sizes = {"zero": 0, "two": 2, "kept": KEPT, "times": 2, "size": SIZE, "heads": HEADS}
    constants = [weight(name, np.array([size])) for name, size in sizes.items()]
    constants += [
        weight("scale", np.float32(SIZE**-0.25)),
        weight("none", np.zeros(1, np.float32)),
    ]
    return model(nodes, axes, [*made, *outputs], constants, opset=opset)


def fused(made, folder, *, declared=None):
    save_model(made, folder / "given")
    points = (*POINTS, *decoding_points(inputs(), AXES))
    return fuse_caches(
        HeldConstants(folder / "given"),
        declared or inputs(),
        points,
        scratch=folder / "fused",
        where="test",
    )


def feeds_at(sizes, seed=0, hidden=-np.inf):
    """Random values, a causal bias, and in the last row of a batch two hidden elements at its beginning."""
    generator = np.random.default_rng(seed)
    batch, new, past = (sizes[name] for name in ("batch", "sequence", "past"))

    def drawn(heads, length):
        return generator.standard_normal((batch, heads, length, SIZE)).astype(np.float32)

    seen = np.arange(past + new) <= past + np.arange(new)[:, None]
    seen = np.broadcast_to(seen, (batch, 1, new, past + new)).copy()
    if batch > 1:
        seen[-1, :, :, :2] = False
    bias = np.where(seen, 0, hidden).astype(np.float32)
    own = {"q": drawn(HEADS, new), "k": drawn(KEPT, new), "v": drawn(KEPT, new), "bias": bias}
    return own | {"past.k": drawn(KEPT, past), "past.v": drawn(KEPT, past)}


def operators(folder):
    return [each.op_type for each in all_nodes(load_model(folder))]


SIZES = [
    {"batch": 1, "sequence": 1, "past": 0}, {"batch": 1, "sequence": 4, "past": 0}, {"batch": 1, "sequence": 1, "past": 9},
    {"batch": 1, "sequence": 3, "past": 6}, {"batch": 3, "sequence": 4, "past": 0}, {"batch": 3, "sequence": 1, "past": 9},
    {"batch": 3, "sequence": 4, "past": 5},
]  # fmt: skip


@pytest.mark.parametrize(
    "made",
    [attention(), attention(guarded=False), by_operator()],
    ids=["products", "no guard", "Attention"],
)
def test_attention_over_a_cache_becomes_one_node_that_computes_the_same_in_place_too(
    made, tmp_path
):
    declared = inputs(in_place=True)
    found = fused(made, tmp_path, declared=declared)
    assert (found.fused, found.layers) == (1, 1)
    assert "GroupQueryAttention" in operators(found.held.source)
    checker.check_model(str(found.held.source / "model.onnx"), full_check=True)
    given, session = (open_session(each) for each in (tmp_path / "given", found.held.source))
    for sizes, hidden in product(SIZES, (-np.inf, np.finfo(np.float32).min)):
        feeds = feeds_at(sizes, hidden=hidden)
        wanted = run_session(given, feeds)
        for found_outputs in (run_session(session, feeds), run_in_place(session, feeds, declared)):
            for name, array in wanted.items():
                np.testing.assert_allclose(found_outputs[name], array, atol=2e-6, err_msg=name)


def test_sizes_come_from_the_inputs_so_that_no_node_reads_the_shape_of_a_cache(tmp_path):
    made = load_model(fused(attention(), tmp_path).held.source)
    read = {each.input[0] for each in made.graph.node if each.op_type == "Shape"}
    assert read <= {"q", "k", "v", "bias"}


def logits_of(name):
    return [value(name, ["batch", HEADS, "sequence", "past + sequence"])]


@pytest.mark.parametrize(
    "made",
    [
        attention(outputs=logits_of("weights")),
        attention(more=[node("Abs", ["past.k"], ["z"])], outputs=[value("z", None)]),
        attention(more=[node("Abs", ["new.v"], ["z"])], outputs=[value("z", None)]),
    ],
    ids=["weights are an output", "the past is read elsewhere", "new values are read elsewhere"],
)
def test_attention_whose_values_are_read_elsewhere_stays_as_it_is(made, tmp_path):
    found = fused(made, tmp_path)
    assert (found.fused, found.layers) == (0, 1)
    assert "GroupQueryAttention" not in operators(found.held.source)


def test_a_text_in_one_buffer_is_that_of_tensors_that_grow(tmp_path):
    declared = inputs(in_place=True)
    session = open_session(fused(attention(), tmp_path, declared=declared).held.source)
    growing = StatefulRun(session, inputs(), 0)
    in_place = StatefulRun(session, declared, 12, blank=np.nan)
    first = feeds_at({"batch": 2, "sequence": 4, "past": 0})
    states = [{n: first[n] for n in ("past.k", "past.v")}] * 2
    for past in (0, 4, 5, 6):
        sizes = {"batch": 2, "sequence": 1 if past else 4, "past": past}
        feeds = {n: a for n, a in feeds_at(sizes, past).items() if not n.startswith("past")}
        outputs = [
            run(feeds | state) for run, state in zip((growing, in_place), states, strict=True)
        ]
        np.testing.assert_allclose(outputs[1]["y"], outputs[0]["y"], atol=2e-6)
        states = [{f"past.{n}": each[f"new.{n}"] for n in "kv"} for each in outputs]
    assert states[0]["past.k"].shape()[2] == 7
    assert states[1]["past.k"].shape()[2] == 12


def test_a_graph_that_was_not_fused_is_refused_in_place(tmp_path):
    save_model(attention(), tmp_path)
    with pytest.raises(Exception, match="pre-allocated"):
        run_in_place(open_session(tmp_path), feeds_at(SIZES[2]), inputs(in_place=True))
