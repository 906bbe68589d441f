from pathlib import Path

import numpy as np
import pytest

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput, Entrypoint
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.steps import reference
from tests.fakes.step_context import run_step

MODULES = Path(__file__).parent / "modules.py"
X = DummyInput("x", "float32", ("batch", 4))


def run(folder, name, *, inputs=(X,), samples=None, outputs=(), args=None, **options):
    params = reference.ReferenceParams(
        model=Entrypoint(f"{MODULES}:load", {"name": name}),
        inputs=inputs,
        outputs=outputs,
        axes=(Axis("batch", 1, 8, 3),),
        samples=None if samples is None else Entrypoint(f"{MODULES}:{samples}", args or {}),
        options=reference.ReferenceOptions(**options),
    )
    return run_step(reference.KIND, params, folder)


def points(context):
    return list(read_reference(context.output("reference")))


def test_every_point_holds_inputs_and_pytorchs_outputs(tmp_path):
    outcome, context = run(tmp_path, "Nested", outputs=("a.1.0", "z"), points=({"batch": 5},))
    found = points(context)
    assert [point.name for point in found][:3] == ["example", "min", "max-batch"]
    assert [point.sizes["batch"] for point in found][:3] == [3, 1, 8]
    assert outcome.metrics == {"points": len(found), "samples": 0}
    for point in found:
        assert point.feeds["x"].shape == (point.sizes["batch"], 4)
        assert np.array_equal(point.outputs["a.1.0"], point.feeds["x"] + 1)
        assert list(point.outputs) == ["a.1.0", "z"]


def test_bytes_depend_on_the_seed_alone(tmp_path):
    def content(folder, seed):
        _, context = run(folder, "Nested", seed=seed)
        return [p.read_bytes() for p in sorted(context.output("reference").iterdir())]

    assert content(tmp_path / "a", 0) == content(tmp_path / "b", 0)
    assert content(tmp_path / "a", 0) != content(tmp_path / "c", 1)


def test_real_samples_become_points_up_to_a_limit(tmp_path):
    args = {"rows": [2, 5, 7]}
    outcome, context = run(tmp_path, "Nested", samples="samples", args=args, max_samples=2)
    real = [point for point in points(context) if point.name.startswith("sample-")]
    assert [(point.name, point.sizes) for point in real] == [
        ("sample-00", {"batch": 2}),
        ("sample-01", {"batch": 5}),
    ]
    assert outcome.metrics["samples"] == 2


@pytest.mark.parametrize(
    ("samples", "args", "said"),
    [
        ("bad_samples", {}, "input 'x' holds 8 NaN"),
        ("load", {"name": "Nested"}, "does not return an iterable"),
    ],
)
def test_samples_that_are_not_as_declared_are_refused(tmp_path, samples, args, said):
    with pytest.raises(StepError) as caught:
        run(tmp_path, "Nested", samples=samples, args=args)
    assert said in caught.value.what
    assert not (tmp_path / "out" / "reference" / "points.json").exists()


def test_nan_is_named_with_its_output_and_point(tmp_path):
    with pytest.raises(
        StepError,
        match=r"output 'output_1' of the PyTorch model itself holds 12 NaN .* at point 'example'",
    ):
        run(tmp_path, "LogOfNegative")


def test_infinities_are_kept_and_mentioned(tmp_path):
    outcome, _ = run(tmp_path, "NegativeInfinity")
    assert "PyTorch's 'output_0' holds infinities at point 'example'" in outcome.notes


def test_a_size_that_the_model_does_not_take_is_named(tmp_path):
    with pytest.raises(StepError) as caught:
        run(tmp_path, "AtMostFive")
    assert caught.value.what.startswith("PyTorch fails at point 'max-batch' (batch=8): ")
    assert caught.value.fix == "narrow 'batch' in `dynamic_axes` to what the model takes"


@pytest.mark.parametrize(
    ("dtype", "high", "fix"),
    [
        ("float32", None, "write `dtype: int64` for 'y' in `dummy_inputs`"),
        ("int64", 100, "write `high: 9` for 'y' in `dummy_inputs`"),
    ],
)
def test_ids_of_the_wrong_type_or_range_are_no_matter_of_sizes(tmp_path, dtype, high, fix):
    ids = DummyInput("y", dtype, ("batch", 4), low=0, high=high)
    with pytest.raises(StepError) as caught:
        run(tmp_path, "Embeds", inputs=(X, ids))
    assert caught.value.what.startswith("PyTorch fails at point 'example' (batch=3): ")
    assert caught.value.fix == fix


def test_an_output_that_is_zero_everywhere_is_a_note(tmp_path):
    outcome, _ = run(tmp_path, "NeverOpens")
    (note,) = outcome.notes
    assert note.startswith("output 'output_0' is 0 in every element at every point: ")


def test_an_encoder_is_compared_with_its_fast_path_on_masks_that_random_ones_never_are(tmp_path):
    inputs = (
        DummyInput("x", "float32", ("batch", 6, 4)),
        DummyInput("padding", "bool", ("batch", 6)),
    )
    with pytest.raises(StepError) as caught:
        run(tmp_path, "PaddedEncoder", inputs=inputs)
    assert "at point 'example, padded', output 'output_0' is 0 for users and " in caught.value.what
    assert "set_fastpath_enabled(False)" in caught.value.what


def test_rows_of_the_least_and_the_greatest_value_are_kept_apart(tmp_path):
    inputs = (X, DummyInput("y", "int64", ("batch", 4), low=2, high=7))
    outcome, context = run(tmp_path, "TwoInputs", inputs=inputs)
    first, second = read_reference(context.output("reference") / "unusual")
    assert first.feeds["y"].tolist() == [[2] * 4, [6] * 4, [6] * 4]
    assert second.feeds["y"].tolist() == [[6] * 4, [2] * 4, [2] * 4]
    assert outcome.metrics["points"] == len(points(context))
    assert set(first.rounding) == set(first.outputs)  # which fp32 is judged by, too
