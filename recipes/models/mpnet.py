"""transformers' MPNet as a sentence embedder, small; weights are seeded, not trained."""

import torch
from transformers import MPNetConfig, MPNetModel

VOCABULARY = 2000


def load(seed=0, layers=2, width=64):
    """The network, 0.25 million parameters."""
    torch.manual_seed(seed)
    config = MPNetConfig(
        vocab_size=VOCABULARY, hidden_size=width, intermediate_size=4 * width,
        num_hidden_layers=layers, num_attention_heads=4, max_position_embeddings=258,
    )  # fmt: skip
    return SentenceEmbedding(MPNetModel(config, add_pooling_layer=False).eval())


class SentenceEmbedding(torch.nn.Module):
    """The mean of the hidden states that are no padding."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask):
        """Embeddings, (batch, width), of length 1."""
        hidden = self.model(input_ids, attention_mask=attention_mask).last_hidden_state
        weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1.0)
        return torch.nn.functional.normalize(mean, dim=-1)
