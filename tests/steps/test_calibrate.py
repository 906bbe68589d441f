import json

import numpy as np
import onnx
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.calibrate.thresholds import IntegerGrid
from onnxbuild.steps.calibrate import KIND, CalibrateParams, CalibrationOptions
from tests.fakes.step_context import run_step
from tests.onnxkit.models import linear, model, value
from tests.steps.graphs import save

X = DummyInput("x", "float32", ("batch", 4))

GRID = IntegerGrid()

DATA = """
import numpy as np

def ramps(count=3, value=1.0):
    for n in range(count):
        yield {"x": np.full((2, 4), value * n, np.float32)}

def listed():
    return [{"x": np.zeros((1, 4), np.float32)}]

def one():
    return listed()[0]

def tails():
    values = np.random.default_rng(0).standard_t(2, (4000, 4)).astype(np.float32)
    for start in range(0, 4000, 40):
        yield {"x": values[start : start + 40]}

"""


def calibrated(made, folder, callable_, samples=3, method="minmax", **args):
    (folder / "data.py").write_text(DATA)
    data = Entrypoint(f"{folder}/data.py:{callable_}", args)
    options = CalibrationOptions(method=method, samples=samples, percentile=99.9)
    return calibrated_on(data, made, folder, options)


def calibrated_on(data, made, folder, options, grid=GRID):
    params = CalibrateParams(data, (X,), options, (Axis("batch", 1, 8, 2),), grid)
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
    assert outcome.metrics == {
        "method": "minmax", "samples": 3, "tensors": 3, "clipped_tensors": 0,
    }  # fmt: skip


def test_infinities_leave_a_value_without_a_range(tmp_path):
    _, report = calibrated(two("Log"), tmp_path, "ramps", value=2.0)  # log 0 is -inf
    assert report["unbounded"] == ["inner"]
    assert sorted(report["ranges"]) == ["x", "y"]


def test_a_nan_that_the_runtimes_own_reductions_pass_over_is_found(tmp_path):
    from onnxbuild.onnxkit.calibrate.ranges import measure_ranges

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
        ("one", {}, "returned a dict; expected an iterable of such samples"),
    ],
)
def test_data_that_can_t_be_used_is_an_error(tmp_path, callable_, args, what):
    with pytest.raises(StepError) as caught:
        calibrated(linear(), tmp_path, callable_, **args)
    assert what in caught.value.what


@pytest.mark.parametrize("method", ["moving_average", "mse"])
def test_each_method_gives_a_range_of_its_own_and_says_what_it_clips(tmp_path, method):
    outcome, report = calibrated(linear(), tmp_path, "tails", samples=100, method=method)
    assert report["method"] == outcome.metrics["method"] == method
    low, high = report["ranges"]["x"]
    least, greatest = report["seen"]["x"]
    values = np.random.default_rng(0).standard_t(2, (4000, 4)).astype(np.float32)
    assert [least, greatest] == pytest.approx([values.min(), values.max()])
    assert least <= low < -4
    assert 4 < high < greatest
    assert 0 < report["clipped"]["x"] < 0.05
    assert outcome.metrics["clipped_tensors"] == len(report["clipped"])


def test_ranges_of_a_histogram_do_not_depend_on_how_samples_are_batched(tmp_path):
    values = np.random.default_rng(0).standard_t(3, (64, 4)).astype(np.float32)
    made = []
    for size in (1, 4, 64):
        folder = tmp_path / str(size)
        folder.mkdir()
        for n, start in enumerate(range(0, 64, size)):
            np.save(folder / f"{n:02}.npy", values[None, start : start + size])
        data = Entrypoint("files", files=tuple(map(str, sorted(folder.glob("*.npy")))))
        options = CalibrationOptions(method="mse", samples=64)
        _, report = calibrated_on(data, two("Neg"), folder, options)
        assert report.pop("samples") == 64 // size
        made.append(report)
    assert made[0] == made[1] == made[2]


@pytest.mark.parametrize(
    ("arrays", "what"),
    [
        ({"y": np.zeros((2, 4), np.float32)}, "found an input 'y'; expected x"),
        ({"x": np.zeros((0, 4), np.float32)}, "yields no sample; expected 5"),
    ],
)
def test_an_archive_that_is_not_what_was_declared_is_an_error(tmp_path, arrays, what):
    np.savez(tmp_path / "calib.npz", **arrays)
    data = Entrypoint("files", files=(str(tmp_path / "calib.npz"),))
    with pytest.raises(StepError) as caught:
        calibrated_on(data, linear(), tmp_path, CalibrationOptions(samples=5))
    assert what in caught.value.what


@pytest.mark.parametrize(
    ("least", "rows", "fix"),
    [
        (1, 0, "write arrays of at least one row"),
        (
            4,
            3,
            (
                "write arrays of at least 4 rows, which make one sample, or lower "
                "`dynamic_axes: {batch: {min: 4}}`"
            ),
        ),
    ],
)
def test_the_error_for_files_without_a_whole_sample_says_how_many_rows_one_has(
    tmp_path, least, rows, fix
):
    np.savez(tmp_path / "calib.npz", x=np.zeros((rows, 4), np.float32))
    data = Entrypoint("files", files=(str(tmp_path / "calib.npz"),))
    params = CalibrateParams(data, (X,), CalibrationOptions(), (Axis("batch", least, 8, 4),), GRID)
    source = save(linear(), tmp_path / "source")
    with pytest.raises(StepError, match="yields no sample; expected 100") as caught:
        run_step(KIND, params, tmp_path / "step", {"model": source})
    assert caught.value.fix == fix


def test_dummy_inputs_calibrate_with_a_warning_and_by_their_seed(tmp_path):
    made = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        (tmp_path / name).mkdir()
        options = CalibrationOptions(samples=100, seed=seed)
        outcome, report = calibrated_on(Entrypoint("dummy"), linear(), tmp_path / name, options)
        made.append(report["ranges"]["x"])
    assert made[0] == made[1] != made[2]
    (note,) = outcome.notes
    assert note.startswith("the ranges come from random inputs, which is no calibration")


def test_mse_and_entropy_know_the_grid(tmp_path):
    found = {}
    for bits in (8, 16):
        folder = tmp_path / str(bits)
        folder.mkdir()
        (folder / "data.py").write_text(DATA)
        data = Entrypoint(f"{folder}/data.py:tails")
        options = CalibrationOptions(method="mse", samples=100)
        _, report = calibrated_on(
            data, linear(), folder, options, IntegerGrid(bits, symmetric=True)
        )
        assert (report["bits"], report["symmetric"]) == (bits, True)
        found[bits] = report["ranges"]["x"][1]
    assert found[8] < 0.95 * found[16]
