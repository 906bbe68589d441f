import numpy as np
import pytest
import torch

from onnxbuild.core.errors import StepError
from onnxbuild.core.recipe import DummyInput, Entrypoint
from onnxbuild.onnxkit.export.torch_module import (
    check_signature,
    load_module,
    make_torch_deterministic,
    run_module,
)
from tests.fakes.step_context import FolderContext

SOURCE = """
import torch

class Double(torch.nn.Module):
    def __init__(self, factor=2.0):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.tensor(factor))
        self.drop = torch.nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x * self.factor)

class Frozen(Double):
    def train(self, mode=True):
        super().train(mode)
        self.drop.eval()

def load(factor=2.0):
    return Double(factor)

def with_a_train_of_its_own():
    return Frozen()

def compiled():
    return torch.compile(Double())

def lazy():
    return torch.nn.Sequential(torch.nn.LazyLinear(3))

def a_class():
    return Double

def a_number():
    return 3

def broken():
    return {}["weights"]
"""


def load(tmp_path, name, **args):
    file = tmp_path / "mine.py"
    file.write_text(SOURCE)
    return load_module(FolderContext(None, tmp_path), Entrypoint(f"{file}:{name}", args))


def x(dtype="float32"):
    return DummyInput("x", dtype, ("batch", 2))


def test_a_module_is_loaded_with_its_arguments_in_eval_mode(tmp_path):
    module = load(tmp_path, "load", factor=3.0)
    assert not module.training
    assert not module.factor.requires_grad
    found = run_module(module, {"x": np.ones((2, 2), np.float32)})
    assert found.outputs["output_0"].tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert found.by_position


def test_a_train_that_returns_nothing_is_as_good_as_another(tmp_path):
    module = load(tmp_path, "with_a_train_of_its_own")
    assert not module.training
    assert not module.drop.training


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what torch.compile loads
def test_a_compiled_module_is_taken_as_it_was_before(tmp_path):
    module = load(tmp_path, "compiled")
    assert type(module).__name__ == "Double"
    assert not module.training


def test_a_lazy_layer_without_weights_is_refused(tmp_path):
    with pytest.raises(
        StepError, match=r"lazy returned a module whose '0\.weight' has no shape"
    ) as caught:
        load(tmp_path, "lazy")
    assert "call the module once" in caught.value.fix


def test_what_is_no_module_is_refused(tmp_path):
    with pytest.raises(StepError, match=r"a_number returned an int; expected a torch\.nn\.Module"):
        load(tmp_path, "a_number")
    with pytest.raises(StepError) as caught:
        load(tmp_path, "a_class")
    assert "an instance and not its class" in caught.value.fix


def test_what_the_users_code_raises_is_one_message_with_its_own_line(tmp_path):
    with pytest.raises(StepError) as caught:
        load(tmp_path, "broken")
    line = SOURCE.splitlines().index('    return {}["weights"]') + 1
    assert "broken raised KeyError: 'weights'" in caught.value.what
    assert caught.value.where == f"{tmp_path / 'mine.py'}:{line}"


class Picky(torch.nn.Module):
    def forward(self, input_ids, mask=None):
        return input_ids


class Any(torch.nn.Module):
    def forward(self, **inputs):
        return inputs["x"]


def test_inputs_that_forward_does_not_take_and_missing_ones_are_refused():
    with pytest.raises(StepError) as caught:
        check_signature(Picky(), [DummyInput("input_idz", "int64", (1,))], "m:export")
    assert caught.value.what == (
        "dummy input 'input_idz' is not a parameter of Picky.forward, which takes input_ids, mask"
    )
    assert caught.value.fix == "did you mean 'input_ids'?"
    with pytest.raises(StepError) as caught:
        check_signature(Picky(), [x()], "m:export")
    assert caught.value.fix == "write `input_ids` in place of `x`"
    with pytest.raises(StepError) as caught:
        check_signature(Picky(), [x(), DummyInput("input_ids", "int64", (1,))], "m:export")
    assert caught.value.fix == "rename or remove `dummy_inputs.x`"
    with pytest.raises(StepError, match=r"Picky.forward requires 'input_ids'.*gives mask"):
        check_signature(Picky(), [DummyInput("mask", "int64", (1,))], "m:export")
    check_signature(Any(), [x()], "m:export")


def test_forward_does_not_change_the_feeds():
    class InPlace(torch.nn.Module):
        def forward(self, x):
            return x.add_(1)

    feeds = {"x": np.ones(2, np.float32)}
    run_module(InPlace(), feeds)
    assert feeds["x"].tolist() == [1.0, 1.0]


def test_torch_is_made_deterministic():
    make_torch_deterministic()
    assert torch.are_deterministic_algorithms_enabled()
    assert torch.get_num_threads() == 1
    first = torch.rand(3)
    make_torch_deterministic()
    assert torch.equal(first, torch.rand(3))
