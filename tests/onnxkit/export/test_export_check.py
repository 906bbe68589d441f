import numpy as np
import onnx
import pytest
import torch

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import Axis, DummyInput
from onnxbuild.onnxkit.export.export_check import check_parity, refuse_first_call, run_probes
from onnxbuild.onnxkit.model.model_files import save_model
from onnxbuild.onnxkit.modules.module_facts import changed_names, state_sums
from tests.onnxkit.models import linear

X = (DummyInput("x", "float32", ("batch", 4)),)
AXES = (Axis("batch", 1, 8, 3),)


class Linear(torch.nn.Module):
    """What `linear()` computes, times something."""

    def __init__(self, factor=1.0, at=None):
        super().__init__()
        weight = np.frombuffer(linear().graph.initializer[0].raw_data, np.float32).reshape(4, 3)
        self.weight = torch.from_numpy(weight.copy())
        self.factor, self.at = factor, at

    def forward(self, x):
        factor = self.factor if self.at in (None, len(x)) else 1.0
        return torch.relu(x @ self.weight) * factor


def check(tmp_path, module, **options):
    save_model(linear(), tmp_path)
    check_parity(tmp_path, run_probes(module, X, AXES, ("y",), "m:export"), "m:export", **options)


def test_probes_are_run_at_several_sizes_with_values_of_their_own():
    probes = run_probes(Linear(), X, AXES, ("y",), "m:export")
    assert [run.point.sizes["batch"] for run in probes.runs] == [3, 4, 1]
    assert [run.outputs[0].shape for run in probes.runs] == [(3, 3), (4, 3), (1, 3)]
    assert not np.array_equal(probes.runs[0].feeds["x"][:1], probes.runs[2].feeds["x"])


def test_what_forward_keeps_of_other_calls_is_named_although_two_in_a_row_agree():
    class KeepsTheGreatest(Linear):
        greatest = 0

        def forward(self, x):
            self.greatest = max(self.greatest, len(x))
            return super().forward(x) / self.greatest

    with pytest.raises(StepError, match="keeps something from call to call") as caught:
        run_probes(KeepsTheGreatest(), X, AXES, ("y",), "m:export")
    assert "with others between them, differ in output 'y'" in caught.value.what


class SetsItself(torch.nn.Module):
    """ActNorm: the first batch decides what it computes from then on. `scratch` is written on each call."""

    def __init__(self, *, trained):
        super().__init__()
        self.loc = torch.nn.Parameter(torch.zeros(4), requires_grad=False)
        self.trained = trained
        self.register_buffer("scratch", torch.zeros(8, 4))

    def forward(self, x):
        if not self.trained:
            self.loc.data.copy_(x.mean(0))
            self.trained = True
        self.scratch[: len(x)] = x - self.loc
        return self.scratch[: len(x)].clone()


def test_a_module_that_its_first_call_sets_is_refused_with_what_it_sets():
    module = SetsItself(trained=False)
    loaded = state_sums(module)
    probes = run_probes(module, X, AXES, ("y",), "m:export")
    assert changed_names(loaded, state_sums(module)) == ["loc", "scratch"]
    with pytest.raises(StepError, match="depends on what forward was called with first") as caught:
        refuse_first_call(lambda: SetsItself(trained=False), loaded, probes, "m:export")
    assert caught.value.what.endswith("when it sets 'loc', 'scratch'")
    other = {**loaded, "loc": 1.0}  # another load has other weights: there is nothing to compare
    refuse_first_call(lambda: SetsItself(trained=False), other, probes, "m:export")


def test_a_buffer_that_is_written_on_each_call_is_no_state():
    module = SetsItself(trained=True)
    loaded = state_sums(module)
    probes = run_probes(module, X, AXES, ("y",), "m:export")
    assert changed_names(loaded, state_sums(module)) == ["scratch"]
    refuse_first_call(lambda: SetsItself(trained=True), loaded, probes, "m:export")


def test_a_draw_that_was_the_same_by_chance_is_still_a_draw():
    class Draws(Linear):
        drawn = 0

        def forward(self, x):
            self.drawn += 1
            noise = torch.rand(()) * 0 if self.drawn < 3 else torch.rand(())
            return super().forward(x) + noise

    with pytest.raises(StepError, match=r"draws random numbers \(aten\.rand at "):
        run_probes(Draws(), X, AXES, ("y",), "m:export")


@pytest.mark.parametrize("factor", [1.0, 1.0 + 1e-6])
def test_another_order_of_sums_is_no_difference(tmp_path, factor):
    check(tmp_path, Linear(factor))


def test_a_difference_names_output_sizes_and_both_values(tmp_path):
    with pytest.raises(StepError) as caught:
        check(tmp_path, Linear(1.01))
    assert caught.value.what.startswith("at batch=3 output 'y' differs from PyTorch in ")
    assert ", PyTorch " in caught.value.what


def test_nan_where_a_mask_leaves_nothing_is_blamed_on_the_mask(tmp_path):
    class Attends(torch.nn.Module):
        def forward(self, x, mask):
            return torch.nn.functional.scaled_dot_product_attention(x, x, x, mask)

    keep = (*X, DummyInput("mask", "bool", ("batch", "batch"), fill=False))
    nodes = [
        onnx.helper.make_node("Where", ["mask", "zero", "low"], ["bias"]),
        onnx.helper.make_node("Softmax", ["bias"], ["weights"]),
        onnx.helper.make_node("MatMul", ["weights", "x"], ["y"]),
    ]
    kinds = (("x", 1, ["batch", 4]), ("mask", 9, ["batch", "batch"]), ("y", 1, ["batch", 4]))
    x, mask, y = (onnx.helper.make_tensor_value_info(*each) for each in kinds)
    constants = [
        onnx.numpy_helper.from_array(np.float32(value), name)
        for name, value in (("zero", 0), ("low", -np.inf))
    ]
    graph = onnx.helper.make_graph(nodes, "attends", [x, mask], [y], constants)
    imports = [onnx.helper.make_opsetid("", 18)]
    save_model(onnx.helper.make_model(graph, opset_imports=imports, ir_version=10), tmp_path)
    probes = run_probes(Attends(), keep, AXES, ("y",), "m:export")
    with pytest.raises(StepError, match=r"output 'y' has \d+ NaN, the first at") as caught:
        check_parity(tmp_path, probes, "m:export")
    assert "bound what 'mask' masks by `fill` or `mask`" in caught.value.fix


def test_a_difference_at_another_size_names_the_axis(tmp_path):
    with pytest.raises(StepError, match=r"axis 'batch' is baked into the graph: at batch=4 "):
        check(tmp_path, Linear(1.01, at=4))


def test_more_values_are_tried_where_the_tracer_froze_a_choice(tmp_path):
    class Branching(Linear):
        def forward(self, x):
            return super().forward(x) * (1.0 if x.sum() > float(self.least) else 2.0)

    module = Branching()
    runs = run_probes(Linear(), X, AXES, ("y",), "m:export").runs
    sums = [float(run.feeds["x"].sum()) for run in runs]
    module.least = min(sums) - 0.01
    check(tmp_path, module)
    with pytest.raises(StepError, match="differs from PyTorch"):
        check(tmp_path, module, frozen=True)
