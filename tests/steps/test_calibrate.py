import json

import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.steps.calibrate import KIND, CalibrateParams, CalibrationOptions
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear, model, value
from tests.steps.graphs import save

X = DummyInput("x", "float32", ("batch", 4))

DATA = """
import numpy as np

def ramps(count=3, value=1.0):
    for n in range(count):
        yield {"x": np.full((2, 4), value * n, np.float32)}

def broken():
    yield {"x": np.zeros((2, 4), np.float32)}
    raise RuntimeError("disk on fire")

def misnamed():
    yield {"y": np.zeros((2, 4), np.float32)}

def listed():
    return [{"x": np.zeros((1, 4), np.float32)}]

def number():
    return 3

def sizes():
    yield {"x": np.ones((1, 4), np.float32)}
    yield {"x": -np.ones((5, 4), np.float32)}
"""


def calibrated(made, folder, callable_, samples=3, **args):
    (folder / "data.py").write_text(DATA)
    params = CalibrateParams(
        Entrypoint(f"{folder}/data.py:{callable_}", args),
        (X,),
        CalibrationOptions(samples=samples),
    )
    source = save(made, folder / "source")
    outcome, context = run_step(KIND, params, folder / "step", {"model": source})
    text = (context.output("calibration") / "ranges.json").read_text()
    return outcome, json.loads(text)


def two(kind):
    """y = kind(x), once more."""
    nodes = [
        onnx.helper.make_node(kind, ["x"], ["inner"], name="first"),
        onnx.helper.make_node("Relu", ["inner"], ["y"], name="second"),
    ]
    return model(nodes, [value("x", ["batch", 4])], [value("y", ["batch", 4])])


def test_ranges_are_those_of_the_values_over_all_samples(tmp_path):
    outcome, report = calibrated(two("Neg"), tmp_path, "ramps", value=0.1)
    assert report["samples"] == 3
    assert report["ranges"]["x"] == [0.0, pytest.approx(0.2)]
    assert report["ranges"]["inner"] == [pytest.approx(-0.2), 0.0]
    assert report["ranges"]["y"] == [0.0, 0.0]
    assert outcome.metrics == {"samples": 3, "tensors": 3}


def test_ranges_read_back_as_the_float32_they_were(tmp_path):
    _, report = calibrated(two("Neg"), tmp_path, "ramps", value=0.1)
    assert np.float32(report["ranges"]["x"][1]) == np.float32(0.1) * 2


def test_samples_may_differ_in_size(tmp_path):
    _, report = calibrated(two("Neg"), tmp_path, "sizes")
    assert report["ranges"]["x"] == [-1.0, 1.0]


def test_the_callable_may_return_a_list(tmp_path):
    outcome, _ = calibrated(linear(), tmp_path, "listed", samples=1)
    assert outcome.metrics["samples"] == 1


def test_no_more_samples_are_taken_than_asked_for(tmp_path):
    outcome, report = calibrated(linear(), tmp_path, "ramps", samples=5, count=1000)
    assert report["samples"] == 5
    assert outcome.notes == ("5 samples are few to calibrate with; 100 are usual",)


def test_fewer_samples_than_asked_for_are_told(tmp_path):
    outcome, _ = calibrated(linear(), tmp_path, "ramps", samples=200, count=120)
    (note,) = outcome.notes
    assert note.endswith("yields 120 samples, fewer than the 200 asked for")


def test_infinities_leave_a_value_without_a_range(tmp_path):
    _, report = calibrated(two("Log"), tmp_path, "ramps", value=2.0)  # log 0 is -inf
    assert report["unbounded"] == ["inner"]
    assert sorted(report["ranges"]) == ["x", "y"]


def test_a_nan_anywhere_in_a_value_is_an_error_with_its_name(tmp_path):
    with pytest.raises(StepError) as caught:
        calibrated(two("Sqrt"), tmp_path, "ramps", value=-1.0)
    assert caught.value.what == "value 'inner' holds a NaN on calibration sample 1"


def test_a_nan_that_the_runtimes_own_reductions_pass_over_is_found(tmp_path):
    from onnxbuild.onnxkit.ranges import measure_ranges

    made = two("Sqrt")
    onnx.shape_inference.infer_shapes(made)
    sample = {"x": np.float32([[1, 2, -1, 3]])}  # not at the first place
    made.graph.value_info.append(value("inner", ["batch", 4]))
    with pytest.raises(StepError, match="value 'inner' holds a NaN"):
        measure_ranges(made, [sample], scratch=tmp_path, where="here")


@pytest.mark.parametrize(
    ("callable_", "args", "what"),
    [
        ("ramps", {"count": 0}, "yields no sample; expected 3"),
        ("broken", {}, "raised RuntimeError: disk on fire"),
        ("misnamed", {}, "found an input 'y'; expected x"),
        ("number", {}, "returned an int; expected something to iterate over"),
    ],
)
def test_data_that_can_t_be_used_is_an_error(tmp_path, callable_, args, what):
    with pytest.raises(StepError) as caught:
        calibrated(linear(), tmp_path, callable_, **args)
    assert what in caught.value.what


def test_the_file_is_the_same_each_time(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        calibrated(linear(), tmp_path / name, "ramps")
    made = [tmp_path / name / "step/out/calibration/ranges.json" for name in ("a", "b")]
    assert made[0].read_bytes() == made[1].read_bytes()
