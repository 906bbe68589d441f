import json

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from onnxbuild.core.errors import NotApplicableError
from onnxbuild.features.modes.bf16 import KIND, Bf16Options, Bf16Params, bf16_bits
from onnxbuild.onnxkit.accuracy.isolated_node_error import find_dominant_node
from onnxbuild.onnxkit.model.scopes import scopes
from tests.cli.conftest import project as built_project
from tests.cli.test_diagnose import OUTLIER, make, pasted
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear, model, value, weight
from tests.steps.graphs import digits, interface, operators, run_model, save, sentences, tiny_bert

IMAGE = np.linspace(0, 1, 3 * 64, dtype=np.float32).reshape(3, 1, 8, 8)
built_project = built_project  # noqa: PLW0127 - a fixture


def converted(source, folder, **options):
    outcome, context = run_step(
        KIND, Bf16Params(Bf16Options(**options)), folder, {"model": source}
    )
    return outcome, context.output("model")


def types(folder):
    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    return {each.name: (each.data_type, tuple(each.dims)) for each in graph.initializer}


def bits(*numbers):
    return [hex(each) for each in bf16_bits(np.array(numbers, np.uint32).view(np.float32))]


def test_halves_are_rounded_to_even():
    assert bits(0x3F800000, 0x3F808000, 0x3F808001, 0x3F818000) == [
        "0x3f80", "0x3f80", "0x3f81", "0x3f82",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("make", "feeds", "stored"), [(tiny_bert, sentences(), 14), (digits, {"image": IMAGE}, 3)]
)
def test_large_weights_take_half_the_bytes_and_outputs_stay_close(tmp_path, make, feeds, stored):
    source = make(tmp_path / "source")
    outcome, target = converted(source, tmp_path / "step")
    assert outcome.metrics["bf16_weights"] == stored
    assert outcome.metrics["size_ratio"] < 0.7
    assert interface(target) == interface(source)
    onnx.checker.check_model(str(target / "model.onnx"))
    for name, expected in run_model(source, feeds).items():
        found = run_model(target, feeds)[name]
        np.testing.assert_allclose(found, expected, atol=0.02)
        assert not np.array_equal(found, expected)


def test_small_weights_and_those_of_one_dimension_stay_in_fp32(tmp_path):
    source = digits(tmp_path / "source")
    _, target = converted(source, tmp_path / "step", min_elements=200)
    for name, (data_type, dims) in types(target).items():
        is_large = len(dims) >= 2 and np.prod(dims) >= 200
        assert (data_type == TensorProto.BFLOAT16) == is_large, name
    assert any(data_type == TensorProto.FLOAT for data_type, _ in types(target).values())


def test_the_weights_of_excluded_nodes_stay_in_fp32(tmp_path):
    source = digits(tmp_path / "source")
    nodes = onnx.load(source / "model.onnx").graph.node
    gemm = next(each for each in nodes if each.op_type == "Gemm")
    outcome, target = converted(source, tmp_path / "step", nodes_to_exclude=(gemm.name,))
    assert outcome.metrics["bf16_weights"] == 2
    found = types(target)
    assert found[gemm.input[1]][0] == TensorProto.FLOAT
    assert sum(data_type == TensorProto.BFLOAT16 for data_type, _ in found.values()) == 2


def test_onnx_runtime_folds_the_casts_when_it_opens_the_model(tmp_path):
    source = digits(tmp_path / "source")
    _, target = converted(source, tmp_path / "step")
    assert operators(target)["Cast"] == 3
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    (tmp_path / "seen").mkdir()
    options.optimized_model_filepath = str(tmp_path / "seen" / "model.onnx")
    onnxruntime.InferenceSession(
        str(target / "model.onnx"), options, providers=["CPUExecutionProvider"]
    )
    assert operators(tmp_path / "seen")["Cast"] == 0


def test_branches_read_the_weights_around_them_and_their_own(tmp_path):
    table = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
    branches = [
        helper.make_graph(
            [helper.make_node("MatMul", ["x", name], [f"{name}_y"], name=f"multiply_{name}")],
            name, [], [value(f"{name}_y", ["batch", 8])], own,
        )
        for name, own in (("w", []), ("v", [weight("v", table * 3)]))
    ]  # fmt: skip
    node = helper.make_node("If", ["c"], ["y"], then_branch=branches[0], else_branch=branches[1])
    inputs = [value("x", ["batch", 8]), value("c", [], TensorProto.BOOL)]
    made = model([node], inputs, [value("y", ["batch", 8])], [weight("w", table)])
    source = save(made, tmp_path / "source")
    outcome, target = converted(source, tmp_path / "step", min_elements=64)
    assert outcome.metrics["bf16_weights"] == 2
    for excluded, kept in (("multiply_w", "w"), ("multiply_v", "v")):
        _, partly = converted(
            source, tmp_path / kept, min_elements=64, nodes_to_exclude=(excluded,)
        )
        tensors = {
            each.name: each.data_type
            for scope in scopes(onnx.load(partly / "model.onnx"))
            for each in scope.graph.initializer
        }
        assert sorted(tensors.values()) == [TensorProto.FLOAT, TensorProto.BFLOAT16]
        assert tensors[kept] == TensorProto.FLOAT
    for taken in (True, False):
        feeds = {"x": np.ones((2, 8), np.float32), "c": np.array(taken)}
        expected = run_model(source, feeds)["y"]
        np.testing.assert_allclose(run_model(target, feeds)["y"], expected, atol=0.05)


def test_a_node_that_makes_most_of_the_error_is_named_with_the_yaml_to_write(tmp_path):
    table = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="rounded"),
        helper.make_node("MatMul", ["a", "v"], ["y"], name="exact"),
    ]
    weights = [weight("w", table), weight("v", np.eye(8, dtype=np.float32))]
    made = model(nodes, [value("x", ["batch", 8])], [value("y", ["batch", 8])], weights)
    source = save(made, tmp_path / "source")
    _, target = converted(source, tmp_path / "step", min_elements=64)
    feeds = {"x": np.linspace(-1, 1, 16, dtype=np.float32).reshape(2, 8)}
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = find_dominant_node(source, target, feeds, scratch)
    assert found is not None
    note = found.note("half", 0.9, ())
    assert note.startswith("MatMul node 'rounded' alone makes 99.9 % of the error")
    assert note.endswith('`nodes_to_exclude: ["rounded"]`')


def test_a_model_without_a_large_weight_is_not_applicable(tmp_path):
    source = save(linear(), tmp_path / "source")
    with pytest.raises(NotApplicableError, match="at least 1024 elements"):
        converted(source, tmp_path / "step")


def test_the_mode_alone_names_the_variant_and_its_tolerances_can_be_written(project, base):
    text = f"{base}quantization: bf16\nvalidate: {{bf16: {{cosine_min: 0.9999}}}}\n"
    recipe = project.recipe(text)
    (variant,) = recipe.variants
    assert (variant.name, variant.precision) == ("bf16", "bf16")
    assert variant.options == Bf16Options()
    assert recipe.sections["validate"].bf16.cosine_min == 0.9999


@pytest.mark.slow
def test_the_node_that_rounding_costs_most_is_found_and_the_yaml_mends_it(built_project):
    variant = "{mode: bf16, min_elements: 8, validate: {sqnr_db_min: 60}}"
    make(built_project, OUTLIER, f"quantization: {{bf16: {variant}}}\n")
    failing = built_project.run("--only", "bf16/validate")
    assert failing.code == 3, failing.out + failing.err
    found = built_project("diagnose", "tiny.yaml:bf16")
    assert found.code == 0, found.out + found.err
    assert "first step where the error appears: tiny:bf16/convert (convert-bf16)" in found.out
    mended = pasted(found.out)["bf16"]
    assert 1 <= len(mended["nodes_to_exclude"]) < 4
    setting = f"quantization.bf16={json.dumps(mended)}"
    assert built_project.run("--only", "bf16/validate", "--set", setting).code == 0
