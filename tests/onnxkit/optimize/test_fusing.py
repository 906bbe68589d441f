from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

from onnxbuild.onnxkit.fp16.float16 import convert
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.optimize.fusing import Fusing, RefusedFusion, spoiling_fusions
from onnxbuild.onnxkit.optimize.held_constants import HeldConstants
from onnxbuild.onnxkit.sessions.element_types import load_typed
from onnxbuild.onnxkit.sessions.open import open_session
from tests.onnxkit.models import model, value, weight

NAMES = tuple("abcdefghij")


def search(*groups):
    """Find what to leave out where any of the groups, together, spoils the graph."""
    tried = []

    def fault(left_out):
        tried.append(frozenset(left_out))
        found = [group for group in groups if not set(group) & set(left_out)]
        return f"wrong by {found[0]}" if found else ""

    return spoiling_fusions(NAMES, fault), tried, fault


def test_nothing_is_left_out_of_a_right_graph():
    found, tried, _ = search()
    assert found == ()
    assert len(tried) == 2


def test_the_one_that_spoils_it_is_found_by_halving():
    found, tried, _ = search("g")
    assert found == (RefusedFusion("g", "wrong by g"),)
    assert len(tried) <= 7


def test_two_that_spoil_it_alone_are_both_found():
    found, _, _ = search("b", "i")
    assert [each.name for each in found] == ["b", "i"]


def test_of_those_that_spoil_it_together_the_last_is_left_out():
    found, _, _ = search("ch")
    assert [each.name for each in found] == ["h"]


def test_a_graph_that_is_wrong_without_any_has_no_answer():
    assert spoiling_fusions(NAMES, lambda left_out: "wrong") is None


PAIRS = [*NAMES, *("".join(pair) for pair in combinations(NAMES, 2))]


@given(st.lists(st.sampled_from(PAIRS), max_size=6))
def test_what_is_left_makes_a_right_graph_and_was_the_last_one_tried(groups):
    found, tried, fault = search(*groups)
    left_out = [each.name for each in found]
    assert not fault(left_out)
    assert tried[-2] == frozenset(left_out)
    assert all(any(name in group for group in groups) for name in left_out)


def test_a_model_with_an_fp16_input_is_converted_to_fp16_after_it_was_optimized(tmp_path):
    nodes = [
        helper.make_node("Add", ["half", "one"], ["more"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    made = model(
        nodes,
        [value("half", ["n", 2], TensorProto.FLOAT16), value("x", ["n", 2])],
        [value("more", ["n", 2], TensorProto.FLOAT16), value("y", ["n", 2])],
        [weight("one", np.ones(1, np.float16)), weight("w", np.eye(2, dtype=np.float32))],
    )
    save_model(made, tmp_path / "given")
    fused = Fusing(
        HeldConstants(tmp_path / "given"), tmp_path / "scratch", "extended", None, "r:optimize"
    ).fuse()
    save_model(fused.model, tmp_path / "fused")
    typed = load_typed(tmp_path / "fused")

    converted = convert(typed, keep_io_types=True, op_types=(), nodes=())
    save_model(converted, tmp_path / "fp16")
    session = open_session(tmp_path / "fp16", where="r:fp16/convert")

    half, x = np.full((3, 2), 1.5, np.float16), np.full((3, 2), 0.5, np.float32)
    more, y = session.run(None, {"half": half, "x": x})
    assert more.tolist() == (half + 1).tolist()
    assert y.tolist() == x.tolist()
