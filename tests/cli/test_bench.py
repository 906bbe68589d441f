"""`onnxbuild bench`: now, side by side, with models from elsewhere."""

import json
import shutil

import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

pytestmark = pytest.mark.slow


def other_model(path, *, name="input", dtype=TensorProto.FLOAT, shape=("batch", 4)):
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Identity", [name], ["y"])],
        "other",
        [value(name, dtype, list(shape))],
        [value("y", dtype, list(shape))],
    )
    opset = helper.make_opsetid("", 18)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[opset], ir_version=9), str(path))
    return str(path)


def in_ort_format(path, model):
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(path)
    onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return str(path)


def test_models_from_elsewhere_are_measured_next_to_the_variants(project, tmp_path):
    assert project.run().code == 0
    bundle = tmp_path / "old" / "fp32"
    shutil.copytree(project.folder / "artifacts/out/tiny/fp32", bundle)
    file = other_model(tmp_path / "other.onnx")
    arguments = ("bench", "tiny.yaml", "--against", str(bundle), "--against", file, "--json")
    arguments += ("--against", in_ort_format(tmp_path / "small.ort", file))
    done = project(*arguments, "--set", "benchmark.max_time_s=0.6")
    assert done.code == 0, done.out + done.err
    report = json.loads(done.out)["tiny"]["cpu"]
    results = report["points"][0]["results"]
    assert set(results) == {"pytorch", "fp32", "old/fp32", "other", "small"}
    assert set(results["fp32"]["against"]) == {"old/fp32", "other", "small"}
    assert set(results["other"]["against"]) == {"old/fp32", "small"}
    assert "done    tiny:benchmark" in done.err
    assert "tiny:fp32/validate" not in done.err

    again = project("bench", "tiny.yaml", "--against", file)
    assert again.code == 0
    assert again.ran == [
        "benchmark"
    ]  # the other model is known by its content; time is always measured
    assert "no longer has" not in again.out + again.err  # of out/tiny/fp32, which it has
    assert "at batch=2:" in again.out
    assert "vs other" in again.out
    assert "each alone:" in again.out
    other_model(tmp_path / "other.onnx", shape=("n", 4))
    assert "against=other" in project("bench", "tiny.yaml", "--against", file).ran
    assert project.run().ran == []


@pytest.mark.parametrize(
    ("changes", "reported"),
    [
        ({"name": "inptu"}, "takes inptu; the recipe feeds input"),
        ({"shape": ("batch", 5)}, "has the shape [batch, 5]; the recipe feeds [batch, 4]"),
    ],
)
def test_a_model_of_other_inputs_is_refused(project, tmp_path, changes, reported):
    file = other_model(tmp_path / "other.onnx", **changes)
    done = project("bench", "tiny.yaml", "--against", file)
    assert done.code == 1
    assert reported in done.out + done.err


def test_what_is_no_model_is_refused_before_anything_is_built(project, tmp_path):
    for path, reported in (
        (tmp_path / "gone.onnx", "there is nothing at"),
        (tmp_path, "there is no model in"),
    ):
        done = project("bench", "tiny.yaml", "--against", str(path))
        assert done.code == 2
        assert reported in done.err
        assert "name an .onnx or .ort file" in done.err
    assert not (project.folder / "artifacts").exists()
    (tmp_path / "junk.onnx").write_bytes(b"version https://git-lfs")
    done = project("bench", "tiny.yaml", "--against", str(tmp_path / "junk.onnx"))
    assert done.code in (1, 2)
    assert "is not an ONNX model" in done.out + done.err
