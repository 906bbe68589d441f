"""transformers' GPT-2, small; weights are seeded, not trained."""

import numpy as np
import torch
from transformers import GPT2Config, GPT2LMHeadModel

VOCABULARY = 6000


def load(seed=0, layers=4, width=192):
    """The network, 4.1 million parameters, eager attention."""
    torch.manual_seed(seed)
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=256, n_embd=width, n_layer=layers, n_head=6,
        use_cache=False, attn_implementation="eager", bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    return NextTokens(GPT2LMHeadModel(config).eval())


class NextTokens(torch.nn.Module):
    """GPT-2 whose forward gives the logits alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        """Logits of each next token, (batch, sequence, VOCABULARY)."""
        return self.model(input_ids, attention_mask=attention_mask).logits


def calibration(count=64):
    """Feeds to calibrate with: random words, the first few much more frequent, as in texts."""
    for n in range(count):
        ranks = np.random.default_rng(1000 + n).zipf(1.3, (2, 48))
        ids = (ranks - 1) % VOCABULARY
        yield {"input_ids": ids, "attention_mask": np.ones_like(ids)}
