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
