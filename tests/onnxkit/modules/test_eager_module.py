"""A module of torch.compile is taken as it was before that."""

import pytest
import torch

from onnxbuild.onnxkit.modules.inference import eager, is_compiled

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning"
)  # of what torch.compile loads


class Fails(torch.nn.Linear):
    """Tells whether the compiler calls it."""

    def forward(self, x):
        assert not torch.compiler.is_compiling()
        return super().forward(x)


def test_the_module_that_was_compiled_is_given_back_with_its_weights_names():
    module = Fails(4, 2)
    made = torch.compile(module)
    assert is_compiled(made)
    assert eager(made) is module
    assert list(eager(made).state_dict()) == ["weight", "bias"]
    assert not is_compiled(eager(made))


def test_so_are_those_inside_and_those_that_were_compiled_in_place():
    inner, placed = Fails(4, 4), Fails(4, 2)
    placed.compile()
    made = torch.nn.Sequential(torch.nn.Sequential(torch.compile(inner)), placed)
    assert is_compiled(made)
    found = eager(made)
    assert found is made
    assert found[0][0] is inner
    assert not is_compiled(found)
    assert found(torch.zeros(3, 4)).shape == (3, 2)


def test_another_module_stays_as_it_is():
    module = torch.nn.Sequential(torch.nn.Linear(4, 2))
    assert not is_compiled(module)
    assert eager(module) is module
