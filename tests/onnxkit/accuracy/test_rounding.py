"""What rounding alone does to a model, measured; an fp32 output that is off by no more passes, a wrong weight does not."""

import shutil

import numpy as np
import onnx
import pytest
from onnx.helper import make_node

from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.core.target import CPU_TARGET, TargetGates
from onnxbuild.onnxkit.accuracy.rounding import (
    measured_rounding,
    moved_feeds,
    rounding_noise,
    with_reordered,
)
from onnxbuild.onnxkit.accuracy.tolerances import Tolerance, VariantTolerances
from onnxbuild.onnxkit.data.reference_feeds import ReferenceOptions
from onnxbuild.onnxkit.data.reference_files import read_reference
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.packages.python_packages import python_test_files
from onnxbuild.steps import validate
from onnxbuild.steps.reference import ONNX, OnnxReferenceParams
from tests.fakes.step_context import run_step
from tests.late_imports import Late
from tests.onnxkit.models import model, value, weight

torch = Late("torch")
FP32 = VariantTolerances(atol=1e-5, rtol=1e-4)
INPUTS = (DummyInput("x", "float32", ("batch", 64), low=-1, high=1),)
W = np.random.default_rng(0).standard_normal((64, 8)).astype(np.float32)


def cancelling(weights=W, *, halves=False):
    """y = (x @ w + 300) - 300: what is left has lost the last bits; `halves` sums in another order."""
    constants = [weight("c", np.float32(300))]
    if halves:
        constants += [weight("w0", weights[:32]), weight("w1", weights[32:])]
        nodes = [
            make_node("Split", ["x"], ["x0", "x1"], axis=1, num_outputs=2),
            make_node("MatMul", ["x0", "w0"], ["a0"]), make_node("MatMul", ["x1", "w1"], ["a1"]),
            make_node("Add", ["a0", "c"], ["b"]), make_node("Add", ["b", "a1"], ["d"]),
        ]  # fmt: skip
    else:
        constants.append(weight("w", weights))
        nodes = [make_node("MatMul", ["x", "w"], ["a"]), make_node("Add", ["a", "c"], ["d"])]
    ends = [value("x", ["batch", 64])], [value("y", ["batch", 8])]
    return model([*nodes, make_node("Sub", ["d", "c"], ["y"])], *ends, constants)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    save_model(cancelling(), folder / "model")
    axes = (Axis("batch", 1, 64, 8),)
    params = OnnxReferenceParams(INPUTS, axes, None, ReferenceOptions())
    _, context = run_step(ONNX, params, folder, {"model": folder / "model"})
    return context.output("reference")


def judged(made, reference, folder, tolerances=FP32):
    save_model(made, folder / "model")
    params = validate.ValidateParams("fp32", "fp32", tolerances, CPU_TARGET, TargetGates())
    inputs = {"model": folder / "model", "reference": reference}
    outcome, _ = run_step(validate.KIND, params, folder, inputs)
    return outcome


def test_another_order_of_sums_passes_with_both_numbers(reference, tmp_path):
    outcome = judged(cancelling(halves=True), reference, tmp_path)
    assert outcome.findings == ()
    (note,) = outcome.notes
    assert note.startswith("variant 'fp32': output 'y' is off by ")
    assert "rounding alone moves the reference by " in note


def test_a_weight_that_is_wrong_by_a_thousandth_is_caught(reference, tmp_path):
    wrong = W.copy()
    wrong[3, 5] += 1e-3
    (finding,) = judged(cancelling(wrong), reference, tmp_path).findings
    assert "; rounding alone moves it by " in finding.what


@pytest.mark.parametrize(
    "own",
    [
        VariantTolerances(atol=1e-6, rtol=1e-6),
        VariantTolerances(atol=1e-5, rtol=1e-4, outputs={"y": Tolerance(atol=1e-6)}),
    ],
)
def test_bounds_that_the_recipe_writes_allow_no_rounding(own, reference, tmp_path):
    assert judged(cancelling(halves=True), reference, tmp_path, own).findings


def test_a_package_s_own_test_allows_the_same(reference):
    bounds = python_test_files(reference, FP32)["golden/tolerances.json"]
    most = max(each.rounding["y"] for each in read_reference(reference))
    assert f'"atol": {4 * most}' in bounds.decode()
    strict = python_test_files(reference, VariantTolerances(atol=1e-6))["golden/tolerances.json"]
    assert '"atol": 1e-06' in strict.decode()


def test_a_reference_that_claims_more_than_rounding_excuses_nothing(reference, tmp_path):
    """Whoever forges a release may write any number."""
    forged = tmp_path / "forged"
    shutil.copytree(reference, forged)
    for file in forged.glob("*.npz"):
        with np.load(file) as arrays:
            every = {name: arrays[name] for name in arrays.files}
        np.savez(file, **{**every, "rounding.y": np.float64(1e9)})
    assert judged(cancelling(W * 1.01), forged, tmp_path).findings


def test_values_made_inside_of_a_module_are_moved_too():
    """The frequency is made by exp, and the time is whole: inputs that move show nothing."""

    def run(feeds, seed):
        time = torch.from_numpy(feeds["t"])
        if seed:
            with rounding_noise(seed):
                return {"y": embedded(time)}
        return {"y": embedded(time)}

    def embedded(time):
        return (time.float() * torch.exp(torch.tensor(-0.5))).sin().numpy()

    times = {"t": np.arange(400, 500)}
    assert moved_feeds(times, 1)["t"] is times["t"]
    share = measured_rounding(run, times)["y"]
    assert 1e-6 < share < 1e-4


def test_what_jumps_is_no_rounding():
    def run(feeds, seed):
        return {"y": np.where(feeds["x"] * (1 + seed * 1e-7) > 1.0, 1.0, 0.0).astype(np.float32)}

    assert measured_rounding(run, {"x": np.ones(4, np.float32)}) == {}


def test_the_graph_with_noise_is_a_valid_one():
    from onnxbuild.onnxkit.accuracy.rounding import add_rounding_noise

    made = cancelling()
    assert add_rounding_noise(made)
    onnx.checker.check_model(made, full_check=True)
    assert not add_rounding_noise(model([], [], [], opset=10))


def test_another_order_of_sums_counts_as_rounding_up_to_a_limit():
    exact = {name: np.float32([1, -2]) for name in "abcd"}
    moves = {"a": 1e-4, "b": 1e-7, "c": 0.1, "d": np.nan}
    reordered = {name: exact[name] + np.float32([by, 0]) for name, by in moves.items()}
    found = with_reordered({"a": 1e-6, "b": 1e-6, "c": 1e-6}, exact, reordered)
    assert found == {"a": pytest.approx(5e-5, rel=1e-3), "b": 1e-6, "c": 1e-4}
    assert with_reordered({"d": 1e-6}, exact, reordered) == {"d": 1e-6}
