"""transformers' Qwen3, small; weights are seeded, not trained."""

import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

VOCABULARY = 2000


def load(seed=0, layers=2, width=64):
    """The network, 0.22 million parameters: normalized queries and keys, shared by two heads each."""
    torch.manual_seed(seed)
    config = Qwen3Config(
        vocab_size=VOCABULARY, hidden_size=width, intermediate_size=2 * width,
        num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        max_position_embeddings=256, tie_word_embeddings=True, use_cache=False,
    )  # fmt: skip
    return NextTokens(Qwen3ForCausalLM(config).eval())


class NextTokens(torch.nn.Module):
    """Qwen3 whose forward gives the logits alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        """Logits of each next token, (batch, sequence, VOCABULARY)."""
        return self.model(input_ids, attention_mask=attention_mask).logits
