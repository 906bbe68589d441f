import math

import torch

from onnxbuild.onnxkit.modules.module_facts import changed_names, state_sums


class Holds(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(2, 3, dtype=torch.bfloat16))
        self.lazy = torch.nn.LazyLinear(4)
        self.register_buffer("flag", torch.tensor(False))
        self.register_buffer("broken", torch.tensor([math.nan]))
        self.register_buffer("complex", torch.zeros(2, dtype=torch.complex64))
        self.register_buffer("sparse", torch.eye(2).to_sparse())
        self.register_buffer("empty", None)


def test_each_parameter_and_buffer_that_has_a_sum_is_there():
    found = state_sums(Holds())
    assert math.isnan(found.pop("broken"))
    assert found == {"weight": 6.0, "flag": 0.0}


def test_a_change_in_place_or_by_assignment_shows_and_a_nan_that_stays_does_not():
    module = Holds()
    before = state_sums(module)
    assert changed_names(before, state_sums(module)) == []
    module.weight.data[0, 0] = 5
    module.flag = torch.tensor(True)
    assert changed_names(before, state_sums(module)) == ["weight", "flag"]
