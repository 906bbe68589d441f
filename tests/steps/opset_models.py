"""Small transformers with random weights, each exported at any opset."""

import torch
import transformers
from torch import nn

WORDS = 40
_SMALL = {"vocab_size": WORDS, "hidden_size": 16, "num_hidden_layers": 1, "intermediate_size": 32}


class Hidden(nn.Module):
    """The first output of a model that takes tokens and a mask."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        return self.model(input_ids, attention_mask=attention_mask, **self._options())[0]

    def _options(self):
        return {"use_cache": False} if hasattr(self.model.config, "num_key_value_heads") else {}


def bert(attention):
    config = transformers.BertConfig(
        **_SMALL, num_attention_heads=2, max_position_embeddings=32, attn_implementation=attention
    )
    return transformers.BertModel(config, add_pooling_layer=False)


def t5(attention):
    config = transformers.T5Config(
        vocab_size=WORDS, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2,
        attn_implementation=attention,
    )  # fmt: skip
    return transformers.T5EncoderModel(config)


def llama(attention):
    config = transformers.LlamaConfig(
        **_SMALL, num_attention_heads=2, num_key_value_heads=1, attn_implementation=attention
    )
    return transformers.LlamaForCausalLM(config)


def qwen3(attention):
    config = transformers.Qwen3Config(
        **_SMALL, num_attention_heads=2, num_key_value_heads=1, head_dim=8,
        attn_implementation=attention,
    )  # fmt: skip
    return transformers.Qwen3ForCausalLM(config)


MODELS = {"bert": bert, "t5": t5, "llama": llama, "qwen3": qwen3}


def load(name, attention="sdpa"):
    torch.manual_seed(0)
    return Hidden(MODELS[name](attention))
