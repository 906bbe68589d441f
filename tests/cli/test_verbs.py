"""plan, why, log, inspect: what they say of matrices, gates and damage."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper


@pytest.fixture
def project(cheap):
    return cheap


@pytest.fixture
def many(project):
    project.edit("tiny.yaml", "name: tiny\n", "name: tiny\nmatrix: {width: [4, 8]}\n")
    project.edit(
        "tiny.yaml", "models/tiny.py:load}", 'models/tiny.py:load, args: {width: "{{ width }}"}}'
    )
    return project


def test_each_recipe_of_a_matrix_can_be_named(many):
    assert many.run("--only", "fp32/package", "-k").code == 0
    models = set()
    for width in (4, 8):
        name = f"tiny@width={width}"
        seen = many("inspect", f"{name}:fp32")
        assert f"out/{name}/fp32/model.onnx" in seen.err  # found: text, and no ONNX
        models.add((many.folder / f"artifacts/out/{name}/fp32/model.onnx").read_bytes())
        assert many("why", f"{name}:export").out.startswith(f"{name}:export is up to date")
        assert many("log", f"{name}:export").code == 0
    assert len(models) == 2
    vague = many("inspect", "tiny:fp32")
    assert vague.code == 2
    assert "is a variant of several recipes: tiny@width=4:fp32, tiny@width=8:fp32" in vague.err
    vague = many("why", "tiny:export")
    assert vague.code == 2
    assert "  fix: write tiny@width=4:export" in vague.err


def test_plan_and_why_tell_of_a_failed_gate_and_a_stale_view(project):
    assert project.run("--only", "fp32/package").code == 0
    project.edit(
        "tiny.yaml",
        "{fp32: none}",
        "{fp32: {mode: none, validate: {atol: 0, rtol: 0, sqnr_db_min: 999}}}",
    )
    failed = project.run("--only", "fp32/package")
    assert failed.code == 3
    assert "artifacts/out/tiny/fp32 still holds an earlier build" in failed.out
    end, advice, page = failed.err.splitlines()[-3:]
    assert end.endswith("1 failed, 1 not run")
    assert advice == "to see where it goes wrong: onnxbuild diagnose tiny.yaml:fp32"
    assert page == "all verdicts as a page: onnxbuild report tiny.yaml"
    plan = project("plan", "tiny.yaml", "--only", "fp32/package")
    assert plan.code == 3
    assert "fails   tiny:fp32/validate  (" in plan.out
    assert "blocked tiny:fp32/package  (needs tiny:fp32/validate)" in plan.out
    assert project("why", "tiny:fp32/validate").code == 3


def test_why_names_the_first_cause_however_far_it_is(project):
    assert project.run("--only", "fp32/package").code == 0
    reported = project("why", "tiny.yaml:fp32/package", "--set", "opset=17").out.splitlines()
    assert reported[1:3] == ["  tiny:export", "    param opset: 18 -> 17"]


def test_inspect_tells_types_apart_and_has_a_unit_for_small_models(project):
    def shown(*types):
        values = [helper.make_value_info(f"v{n}", each) for n, each in enumerate(types)]
        weight = numpy_helper.from_array(np.ones(300, np.float32), "w")
        graph = helper.make_graph([], "g", values, values[:1], initializer=[weight])
        onnx.save(helper.make_model(graph), project.folder / "small.onnx")
        return project("inspect", "small.onnx").out.splitlines()

    scalar = helper.make_tensor_type_proto(1, ())
    table = helper.make_map_type_proto(TensorProto.INT64, scalar)
    kinds = helper.make_tensor_type_proto(1, None), helper.make_sequence_type_proto(table)
    lines = shown(scalar, *kinds)
    assert "input        v0: float32[]" in lines
    assert "input        v1: float32 of any shape" in lines
    assert "input        v2: sequence of map of int64 to float32[]" in lines
    assert "weights      float32: 1.2 KiB" in lines
    assert next(line for line in lines if line.startswith("size")).endswith(" KiB, 300 parameters")


def test_looking_leaves_no_store_behind(project):
    assert project("plan", "tiny.yaml").code == 0
    assert project("cache", "stats").code == 2
    assert not (project.folder / "artifacts").exists()


def test_the_folder_of_a_variant_that_is_gone_is_reported(project):
    project.edit("tiny.yaml", "{fp32: none}", "{fp32: none, half: fp16}")
    project.edit("tiny.yaml", "max_time_s: 0.1", "baseline: false, max_time_s: 0.1")
    assert project.run().code == 0
    project.edit("tiny.yaml", ", half: fp16", "")
    seen = project.run()
    assert "left over: artifacts/out/tiny/half (tiny.yaml no longer has it); to remove" in seen.err
    assert (project.folder / "artifacts/out/tiny/half/model.onnx").exists()
