"""What a module's own config and the sums of its state say."""

import math
from types import SimpleNamespace

import torch
from torch import nn

from onnxbuild.onnxkit.modules.module_facts import changed_names, describe_module, state_sums


class Wrapper(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.inner = nn.Identity()
        self.inner.config = config


def test_a_config_is_found_inside_a_wrapper():
    config = SimpleNamespace(model_type="bert", num_attention_heads=12, hidden_size=384)
    expected = {"model_type": "bert", "num_heads": 12, "hidden_size": 384}
    assert describe_module(Wrapper(config)) == expected


def test_other_spellings_and_mappings_are_read():
    config = {"model_type": "gpt2", "n_head": 4, "n_embd": 64}
    expected = {"model_type": "gpt2", "num_heads": 4, "hidden_size": 64}
    assert describe_module(Wrapper(config)) == expected


def test_torchs_own_attention_says_its_sizes():
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    assert describe_module(layer) == {"model_type": None, "num_heads": 2, "hidden_size": 16}


def test_a_module_that_says_nothing_gives_nulls():
    nothing = {"model_type": None, "num_heads": None, "hidden_size": None}
    assert describe_module(nn.Linear(2, 2)) == nothing
    assert describe_module(Wrapper(SimpleNamespace(hidden_size=[1, 2]))) == nothing


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
