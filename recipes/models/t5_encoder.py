"""transformers' T5 encoder, small; weights are seeded, not trained."""

import torch
from transformers import T5Config, T5EncoderModel

VOCABULARY = 2000


def load(seed=0, layers=2, width=64):
    """The encoder with relative positions, 0.23 million parameters."""
    torch.manual_seed(seed)
    config = T5Config(
        vocab_size=VOCABULARY, d_model=width, d_kv=16, d_ff=4 * width, num_layers=layers,
        num_heads=4, dropout_rate=0.0,
    )  # fmt: skip
    return Encoder(T5EncoderModel(config).eval())


class Encoder(torch.nn.Module):
    """T5's encoder, its output alone."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        """Hidden state of each token, (batch, sequence, width)."""
        return self.model(input_ids, attention_mask=attention_mask).last_hidden_state
