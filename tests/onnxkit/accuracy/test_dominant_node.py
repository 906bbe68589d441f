import itertools
import math

import numpy as np
import pytest
from onnx import helper

from onnxbuild.adapters.machine import host_facts
from onnxbuild.mode_steps.auto_options import without_auto
from onnxbuild.onnxkit.accuracy.isolated_node_error import DominantNode, find_dominant_node
from onnxbuild.steps.quantize_dynamic import KIND, DynamicOptions, DynamicParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import model, value, weight
from tests.onnxkit.quantize.test_eight_bit_forms import static
from tests.onnxkit.single_operators import Single, normal
from tests.steps.graphs import save

WIDTH = 32
FEEDS = {"x": normal(4, WIDTH)}


@pytest.fixture(autouse=True)
def _in_its_own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # as a child runs a step


def chain(outlier):
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
    source, target = quantized(chain(1000), tmp_path)
    found = find_dominant_node(source, target, FEEDS, tmp_path)
    assert found is not None
    assert (found.name, found.op_type) == ("second", "MatMul")
    assert found.share > 0.9


def test_with_the_node_in_fp32_none_is_named_any_more(tmp_path):
    source, target = quantized(chain(1000), tmp_path, nodes_to_exclude=("second",))
    assert find_dominant_node(source, target, FEEDS, tmp_path) is None


def test_of_a_static_variant_what_reads_the_value_is_named_too_and_leaving_both_mends_it(tmp_path):
    found = {}
    for excluded in ((), ("first",), ("first", "second")):
        folder = tmp_path / "-".join(["static", *excluded])
        folder.mkdir()
        _, sqnr = static(Single(chain(1000), FEEDS), folder, nodes_to_exclude=excluded)
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
    made = chain(1000)
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
