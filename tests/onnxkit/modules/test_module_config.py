from types import SimpleNamespace

from torch import nn

from onnxbuild.onnxkit.modules.module_facts import describe_module


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
