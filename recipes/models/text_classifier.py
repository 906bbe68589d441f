"""A small text classifier: embedding, transformer encoder, mean pooling; seeded weights."""

import torch
from torch import nn

VOCABULARY = 5000
CLASSES = 4


class TextClassifier(nn.Module):
    def __init__(self, width=128, heads=4, layers=2, longest=256):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(longest, width)
        layer = nn.TransformerEncoderLayer(
            width, heads, 4 * width, dropout=0.0, activation="gelu", batch_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, CLASSES)

    def forward(self, tokens, mask):
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        hidden = self.tokens(tokens) + self.positions(positions)
        hidden = self.encoder(hidden, src_key_padding_mask=mask == 0)
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        pooled = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1.0)
        return {"logits": self.head(pooled), "embedding": pooled}


def load(seed=0):
    torch.manual_seed(seed)
    return TextClassifier()


def samples(count=6, seed=1):
    """Texts of different lengths, padded as a tokenizer would."""
    generator = torch.Generator().manual_seed(seed)
    for n in range(count):
        lengths = torch.randint(3, 12 + 8 * n, (1 + n,), generator=generator)
        longest = int(lengths.max())
        mask = (torch.arange(longest) < lengths[:, None]).long()
        tokens = torch.randint(1, VOCABULARY, (1 + n, longest), generator=generator)
        yield {"tokens": tokens * mask, "mask": mask}
