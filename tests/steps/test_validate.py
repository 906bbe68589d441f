import json

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxbuild.core.errors import StepError
from onnxbuild.core.target import CPU_TARGET, Link, Target, TargetGates
from onnxbuild.onnxkit.accuracy.tolerances import DEFAULT_TOLERANCES, Tolerance, VariantTolerances
from onnxbuild.onnxkit.data.reference_files import ReferencePoint, ReferenceWriter
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.steps.validate import KIND, ValidateParams
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear, model, value

W = numpy_helper.to_array(linear().graph.initializer[0])


def reference(folder, change=lambda y: y, rows_of=(("example", 2), ("min", 1)), **more):
    """Points with batch 2 and 1, whose outputs are what `linear` must give."""
    folder.mkdir(parents=True)
    writer = ReferenceWriter(folder)
    for name, rows in rows_of:
        x = np.linspace(-1, 1, rows * 4, dtype=np.float32).reshape(rows, 4)
        outputs = {"y": change(np.maximum(x @ W, 0)), **more}
        writer.add(ReferencePoint(name, {"batch": rows}, {"x": x}, outputs))
    writer.finish()
    return folder


def run(
    tmp_path,
    made=None,
    *,
    precision="fp32",
    tolerances=None,
    target=CPU_TARGET,
    gates=None,
    of_mode=(),
    scored=False,
    calibrated=None,
    **options,
):
    save_model(made or linear(), tmp_path / "model")
    default = DEFAULT_TOLERANCES.get(precision, DEFAULT_TOLERANCES["fp32"])
    given = tolerances or VariantTolerances(
        default.atol, default.rtol, default.cosine_min, default.sqnr_db_min, default.equal_min
    )
    params = ValidateParams(
        precision, precision, given, target, gates or TargetGates(), options=of_mode, scored=scored
    )
    inputs = {"model": tmp_path / "model", "reference": reference(tmp_path / "ref", **options)}
    if calibrated is not None:
        inputs["calibration"] = tmp_path / "calibration"
        inputs["calibration"].mkdir()
        (inputs["calibration"] / "ranges.json").write_text(json.dumps(calibrated))
    outcome, context = run_step(KIND, params, tmp_path, inputs)
    text = (context.output("report") / "report.json").read_text()
    assert "NaN" not in text.replace(" NaN", "")
    assert "Infinity" not in text
    return outcome, json.loads(text)


def test_a_faithful_model_passes_at_every_point(tmp_path):
    outcome, report = run(tmp_path)
    assert outcome.findings == ()
    assert report["passed"]
    assert outcome.metrics["points"] == outcome.metrics["points_passed"] == 2
    assert outcome.metrics["max_abs"] < 1e-6
    assert outcome.metrics["cosine_min"] > 0.999999
    assert [point["point"] for point in report["points"]] == ["example", "min"]
    assert report["points"][1]["sizes"] == {"batch": 1}
    assert report["worst"]["output"] == "y"
    assert report["tolerances"]["rtol"] == 1e-4


def test_a_part_that_is_constant_does_not_pass_by_the_cosine_of_the_others(tmp_path):
    units = np.array([1, 1e4, 1], np.float32)
    dead = linear()
    dead.graph.initializer[0].CopyFrom(numpy_helper.from_array(W * units * (units > 1), "w"))
    outcome, report = run(
        tmp_path,
        dead,
        precision="int8",
        change=lambda y: y * units,
        rows_of=[("example", 8)],
        of_mode=("only_products", "nodes_to_exclude"),
    )
    (finding,) = outcome.findings
    assert finding.where == "variant 'int8', output y[:, 0:3:2]"
    assert finding.what.startswith(
        "it is 0 throughout, where the reference's values have a spread"
    )
    assert "`only_products: true`" in finding.fix
    assert not report["passed"]
    assert [each["part"] for each in report["lost_parts"]] == ["y[:, 0:3:2]"]
    assert (outcome.metrics["part"], outcome.metrics["cosine_min"]) == ("y[:, 0:3:2]", 0.0)


def wrong_on(*points):
    """A reference that the model differs from at some points."""
    names = iter(["example", "min", "sample-00", "sample-01"])
    return lambda y: -y if next(names) in points else y


REAL = {"rows_of": [("example", 2), ("min", 1), ("sample-00", 2), ("sample-01", 2)]}


def test_noise_warns_of_quantized_variants_where_there_are_real_samples(tmp_path):
    outcome, report = run(tmp_path, precision="int8", change=wrong_on("example", "min"), **REAL)
    assert outcome.findings == ()
    assert report["passed"]
    note = "on random inputs, variant 'int8', output 'y', point 'example' (batch=2): cosine -1.0"
    assert outcome.notes[0].startswith(note)
    assert outcome.notes[0].endswith("; real data decide")


def test_a_wrong_real_sample_fails_whatever_noise_shows(tmp_path):
    outcome, _ = run(tmp_path, precision="int8", change=wrong_on("sample-01"), **REAL)
    assert {each.where.rpartition(", ")[2] for each in outcome.findings} == {
        "point 'sample-01' (batch=2)"
    }


@pytest.mark.parametrize(
    ("precision", "scored", "decides"),
    [("int8", True, False), ("int8", False, True), ("fp32", True, True)],
)
def test_noise_decides_where_no_real_data_do(tmp_path, precision, scored, decides):
    outcome, _ = run(tmp_path, precision=precision, scored=scored, change=lambda y: -y)
    assert bool(outcome.findings) == decides


def test_shapes_count_on_noise_whatever_real_samples_show(tmp_path):
    names = iter(["example", "min", "sample-00", "sample-01"])
    outcome, _ = run(
        tmp_path,
        precision="int8",
        change=lambda y: y[:, :2] if next(names) == "min" else y,
        **REAL,
    )
    (finding,) = outcome.findings
    assert finding.what == "it has shape [1, 3]; expected [1, 2]"


@pytest.mark.parametrize(
    ("seen", "low_high"),
    [([0.0003, 0.4997], "low: 0, high: 0.5"), ([-0.2117, -0.1], "low: -0.22, high: -0.1"), ([-1, 1], "")],
)  # fmt: skip
def test_dummies_beyond_what_calibration_saw_are_the_fix(tmp_path, seen, low_high):
    calibrated = {"ranges": {"x": [-9, 9]}, "seen": {"x": seen}}
    outcome, _ = run(tmp_path, precision="int8", change=lambda y: -y, calibrated=calibrated)
    fixes = {each.fix for each in outcome.findings}
    if low_high:
        (fix,) = fixes
        assert fix.startswith("dummy values of input 'x' go from -1 to 1, and calibration saw ")
        assert f"write `{low_high}` in `dummy_inputs: {{x: ...}}`" in fix
        assert fix.endswith("`reference: {samples: FILE.py:CALLABLE}`")
    else:
        assert not any("dummy" in fix for fix in fixes)


def test_a_breach_names_variant_output_point_element_bound_and_a_fix(tmp_path):
    def spoil(y):
        y = y.copy()
        y.flat[-1] += 0.5
        return y

    outcome, report = run(tmp_path, change=spoil)
    (finding,) = outcome.findings
    assert finding.where.startswith("variant 'fp32', output 'y', point '")
    assert "1 of " in finding.what
    assert "differ by more than 1e-05 + 0.0001 |b|; worst [" in finding.what
    assert "(and at 1 more of 2 points)" in finding.what
    assert "optimize: {level: basic}" in finding.fix
    assert outcome.metrics["points_passed"] == 0
    assert not report["points"][0]["passed"]
    assert report["points"][0]["outputs"]["y"]["breaches"]


def test_int8_is_judged_by_cosine_and_reported_per_channel(tmp_path):
    outcome, _ = run(tmp_path, precision="int8", of_mode=("per_channel",), change=lambda y: -y)
    assert outcome.findings[0].what.startswith("cosine -1.000000 is")
    assert "is below 0.98; worst element [" in outcome.findings[0].what
    assert "per_channel: true" in outcome.findings[0].fix


def test_shape_dtype_and_nan_come_before_any_tolerance(tmp_path):
    outcome, _ = run(tmp_path / "shape", change=lambda y: y[:, :2].copy())
    assert "it has shape [2, 3]; expected [2, 2]" in outcome.findings[0].what
    outcome, _ = run(tmp_path / "dtype", change=lambda y: y.astype(np.float64))
    assert "it has dtype float32; expected float64" in outcome.findings[0].what

    nodes = [helper.make_node("Sqrt", ["x"], ["y"])]
    nan = model(nodes, [value("x", ["batch", 4])], [value("y", ["batch", 4])])
    outcome, report = run(tmp_path / "nan", nan, change=lambda y: np.ones((len(y), 4), np.float32))
    assert "NaN, the first at [0, 0]" in outcome.findings[0].what
    assert report["metrics"]["max_abs"] is None


def test_a_variant_with_float16_at_its_edges_is_fed_and_judged(tmp_path):
    half = TensorProto.FLOAT16
    made = model(
        [helper.make_node("MatMul", ["x", "w"], ["xw"]), helper.make_node("Relu", ["xw"], ["y"])],
        [value("x", ["batch", 4], half)],
        [value("y", ["batch", 3], half)],
        [numpy_helper.from_array(W.astype(np.float16), "w")],
    )
    outcome, _ = run(tmp_path, made, precision="fp16")
    assert outcome.findings == ()
    assert outcome.metrics["max_abs"] > 0


def test_a_provider_that_is_missing_fails_the_step(tmp_path):
    with pytest.raises(StepError, match="'qnn'"):
        run(tmp_path, target=Target("qnn", (Link("qnn"),)))


def test_too_many_nodes_on_the_cpu_are_a_finding(tmp_path):
    chain = Target("npu-cpu", (Link("qnn"), Link("cpu")))
    (tmp_path / "target").mkdir(parents=True)
    (tmp_path / "target/report.json").write_text(json.dumps({"absent": "", "loads": ["cpu"]}))
    save_model(linear(), tmp_path / "model")
    inputs = {"model": tmp_path / "model", "reference": reference(tmp_path / "ref")}
    inputs["target"] = tmp_path / "target"
    for gates, count in ((TargetGates(), 0), (TargetGates("none", 0, 1.0), 2)):
        params = ValidateParams("fp32", "fp32", VariantTolerances(), chain, gates)
        outcome, _ = run_step(KIND, params, tmp_path, inputs)
        assert len(outcome.findings) == count
    assert "2 of 2 nodes run on the CPU (1 Gemm, 1 Relu)" in outcome.findings[0].what


def test_a_target_that_leaves_all_to_the_cpu_has_not_passed(tmp_path):
    require = "none"
    aside = Target("npu", (Link("CPUExecutionProvider"),))  # no name of the CPU's own target
    outcome, report = run(tmp_path, target=aside, gates=TargetGates(require))
    assert report == {
        "provider": "npu",
        "skipped": "'npu' loads, and runs none of the model's 2 nodes: all are on CPUExecutionProvider",
    }
    assert bool(outcome.findings) == (require == "one")
    assert bool(outcome.notes) == (require == "none")


def test_a_target_that_is_not_there_is_skipped_without_a_session(tmp_path):
    (tmp_path / "target").mkdir(parents=True)
    reported = {"absent": "does not load: no device", "loads": []}
    (tmp_path / "target/report.json").write_text(json.dumps(reported))
    qnn = Target("qnn", (Link("qnn"),))
    params = ValidateParams("fp32", "fp32", VariantTolerances(), qnn, TargetGates())
    outcome, context = run_step(KIND, params, tmp_path, {"target": tmp_path / "target"})
    report = json.loads((context.output("report") / "report.json").read_text())
    assert report == {"provider": "qnn", "skipped": "does not load: no device"}
    assert outcome.metrics == {"target": "qnn", "skipped": "does not load: no device"}


def test_a_variant_that_passes_far_from_pytorch_gets_a_note_on_the_node_that_dominates(tmp_path):
    first, second = np.eye(4, dtype=np.float32), W.copy()
    made = {}
    for name, off in (("exact", 0.0), ("model", 0.15)):
        spoilt = second.copy()
        spoilt[0] += off
        weights = [
            numpy_helper.from_array(first * (1 + off / 1000), f"a/{name}"),
            numpy_helper.from_array(spoilt, f"b/{name}"),
        ]
        nodes = [
            helper.make_node("MatMul", ["x", f"a/{name}"], ["h"], name="first"),
            helper.make_node("MatMul", ["h", f"b/{name}"], ["z"], name="second"),
            helper.make_node("Relu", ["z"], ["y"], name="last"),
        ]
        ends = [value("x", ["batch", 4])], [value("y", ["batch", 3])]
        made[name] = tmp_path / name
        save_model(model(nodes, *ends, weights), made[name])
    inputs = {**made, "reference": reference(tmp_path / "ref")}
    for least, passes in ((None, True), (0.99, False)):
        tolerances = VariantTolerances(outputs={"y": Tolerance(10.0, None, least)})
        params = ValidateParams(
            "int8", "int8", tolerances, CPU_TARGET, TargetGates(), excluded=("*/head",)
        )
        outcome, _ = run_step(KIND, params, tmp_path / f"{least}", inputs)
        reported = [*outcome.notes, *(each.fix for each in outcome.findings)]
        assert reported
        assert all(each.startswith("MatMul node 'second' alone makes 9") for each in reported)
        assert all('`nodes_to_exclude: ["*/head", "second"]`' in each for each in reported)
        assert (outcome.findings == ()) is passes


def ids_of(shift):
    """y as `linear` makes it, and ids of 20,000 and more, `shift` of the first rows too many."""
    made = linear()
    made.graph.node.append(helper.make_node("ArgMax", ["y"], ["top"], axis=1, keepdims=0))
    made.graph.node.append(helper.make_node("Add", ["top", "shift"], ["ids"]))
    made.graph.initializer.append(numpy_helper.from_array(np.int64(20_000 + shift), "shift"))
    made.graph.output.append(value("ids", ["batch"], TensorProto.INT64))
    return made


def test_wrong_ids_fail_a_model_of_few_bits_whose_cosine_is_near_one(tmp_path):
    folder = reference(tmp_path / "ids")
    for entry in json.loads((folder / "points.json").read_text()):
        with np.load(folder / entry["file"]) as point:
            arrays = dict(point)
        arrays["output.ids"] = arrays["output.y"].argmax(1) + 20_000
        np.savez(folder / entry["file"], **arrays)

    def judged(shift):
        save_model(ids_of(shift), tmp_path / str(shift))
        given = VariantTolerances(cosine_min=0.95, sqnr_db_min=6.0, equal_min=0.95)
        params = ValidateParams("int4", "int4", given, CPU_TARGET, TargetGates())
        inputs = {"model": tmp_path / str(shift), "reference": folder}
        return run_step(KIND, params, tmp_path, inputs)[0]

    right, wrong = judged(0), judged(1)
    assert right.findings == ()
    assert right.metrics["equal_min"] == 1.0
    (finding,) = wrong.findings
    assert finding.what.startswith("2 of 2 elements differ: the share of equal ones, 0.0000, is ")
    assert finding.where == "variant 'int4', output 'ids', point 'example' (batch=2)"
    assert finding.fix.endswith("or lower `validate: {int4: {equal_min: ...}}`")
    assert wrong.metrics["equal_min"] == 0.0
    assert wrong.metrics["max_abs"] < 1e-6, "ids don't count as the outputs' error"
    assert wrong.metrics["cosine_min"] > 0.9999


def test_an_output_without_a_value_at_any_point_is_not_passed_but_of_a_pipeline(tmp_path):
    made = linear()
    made.graph.initializer.append(numpy_helper.from_array(np.array([0]), "zero"))
    made.graph.node.append(helper.make_node("Slice", ["y", "zero", "zero"], ["boxes"]))
    width = made.graph.output[0].type.tensor_type.shape.dim[1].dim_value
    made.graph.output.append(value("boxes", [None, width]))
    boxes = np.zeros((0, width), np.float32)
    outcome, report = run(tmp_path / "model", made, boxes=boxes)
    (finding,) = outcome.findings
    assert finding.where == "variant 'fp32', output 'boxes'"
    assert "none of its values is compared" in finding.what
    assert not report["passed"]
    inputs = {"model": tmp_path / "model/model", "reference": tmp_path / "model/ref"}
    params = ValidateParams(
        "fp32", "fp32", VariantTolerances(1e-5), CPU_TARGET, TargetGates(), section="processing"
    )
    outcome, _ = run_step(KIND, params, tmp_path / "pipeline", inputs)
    assert outcome.findings == ()
    assert "none of its values is compared" in outcome.notes[0]


def test_small_outputs_that_are_all_wrong_do_not_pass_by_atol(tmp_path):
    small = linear()
    for tensor in small.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * 0, tensor.name))
    outcome, report = run(tmp_path, small, change=lambda y: y * np.float32(1e-7))
    (finding,) = outcome.findings
    assert finding.what.startswith(
        "its error over all 2 points is 100% of its values, allowed 40%"
    )
    assert "outputs: {y: {atol: ..., rtol: ...}}" in finding.fix
    assert not report["passed"]


@pytest.mark.parametrize(
    ("source", "said"),
    [(linear(), "write `optimize: {level: none}`"), (None, "`onnxbuild diagnose test:fp32`")],
)
def test_the_model_as_it_was_made_decides_whether_an_optimization_is_to_blame(
    source, said, tmp_path
):
    """The model with the wrong weight is the source itself, or what was made of it."""
    wrong = linear()
    wrong.graph.initializer[0].CopyFrom(numpy_helper.from_array(W * 1.1, "w"))
    for name, made in (("model", wrong), ("source", source or wrong)):
        save_model(made, tmp_path / name)
    default = DEFAULT_TOLERANCES["fp32"]
    given = VariantTolerances(default.atol, default.rtol)
    params = ValidateParams("fp32", "fp32", given, CPU_TARGET, TargetGates(), level="basic")
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "report.json").write_text("{}")
    inputs = {name: tmp_path / name for name in ("model", "source", "config")}
    inputs["reference"] = reference(tmp_path / "ref")
    outcome, _ = run_step(KIND, params, tmp_path, inputs)
    (finding,) = outcome.findings
    assert said in finding.fix
    assert "widen" not in finding.fix
