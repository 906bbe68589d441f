import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.onnxkit.model.node_patterns import select_nodes
from tests.onnxkit.models import linear


def selected(*patterns, rename=()):
    made = linear()
    for node, name in zip(made.graph.node, rename, strict=False):
        node.name = name
    return select_nodes(patterns, made, option="nodes_to_exclude", where="here")


def test_names_and_patterns_give_nodes_in_the_graphs_order_each_once():
    assert selected() == ()
    assert selected("clip", "multiply") == ("multiply", "clip")
    assert selected("*l*", "clip") == ("multiply", "clip")
    assert selected("s?ift", "[m]*") == ("multiply", "shift")


def test_a_pattern_that_matches_nothing_is_an_error_that_lists_nodes():
    with pytest.raises(StepError) as caught:
        selected("clip", "*/ffn/*")
    assert caught.value.what == (
        "the pattern '*/ffn/*' in `nodes_to_exclude` matches none of the graph's 3 nodes; "
        "it has shift, multiply, clip"
    )
    assert "leave '*/ffn/*' out" in caught.value.fix


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("*/attention/*", "'*/attn/*', which matches 2 nodes"),
        ("node_Matmul_*", "'node_MatMul_*', which matches 1 node"),
    ],
)
def test_a_pattern_with_a_wrong_word_is_reported_with_the_right_one(pattern, meant):
    names = ("/encoder/0/attn/MatMul", "/encoder/1/attn/MatMul", "/head/MatMul")
    made = linear()
    made.graph.node.extend([made.graph.node[0]] * 2)
    for node, name in zip(made.graph.node, (*names, "node_MatMul_7"), strict=False):
        node.name = name
    with pytest.raises(StepError) as caught:
        select_nodes([pattern], made, option="nodes_to_exclude", where="here")
    assert caught.value.fix == f"did you mean {meant}?" if meant else "leave" in caught.value.fix


def test_a_name_that_is_no_nodes_is_an_error_with_the_nearest():
    with pytest.raises(StepError) as caught:
        selected("clipp")
    assert caught.value.fix == "did you mean 'clip'?"
