"""A small encoder and decoder of texts, as two models; weights are seeded, and both hold the same table of tokens."""

import torch
from torch.nn import functional

VOCABULARY = 320
WIDTH = 64
HEADS = 4


class Attention(torch.nn.Module):
    """Attention of several heads, from each position of `x` to those of `memory`."""

    def __init__(self):
        super().__init__()
        self.query = torch.nn.Linear(WIDTH, WIDTH)
        self.key = torch.nn.Linear(WIDTH, WIDTH)
        self.value = torch.nn.Linear(WIDTH, WIDTH)
        self.out = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x, memory, mask):
        """Return (batch, positions, width); `mask` is true where attention is allowed."""
        query, key, value = (
            layer(each).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for layer, each in ((self.query, x), (self.key, memory), (self.value, memory))
        )
        found = functional.scaled_dot_product_attention(query, key, value, mask)
        return self.out(found.transpose(1, 2).flatten(2))


class Encoder(torch.nn.Module):
    """From tokens to what the decoder looks at."""

    def __init__(self, tokens):
        super().__init__()
        self.tokens = tokens
        self.attention = Attention()
        self.norm = torch.nn.LayerNorm(WIDTH)

    def forward(self, input_ids, attention_mask):
        """Return (batch, source, width)."""
        x = self.tokens(input_ids)
        allowed = attention_mask[:, None, None, :] > 0
        return self.norm(x + self.attention(x, x, allowed))


class Decoder(torch.nn.Module):
    """From what the encoder gave, and the tokens so far, to the next token; its head is the table of tokens."""

    def __init__(self, tokens):
        super().__init__()
        self.tokens = tokens
        self.own = Attention()
        self.cross = Attention()
        self.norm = torch.nn.LayerNorm(WIDTH)

    def forward(self, decoder_ids, cross, attention_mask):
        """Return logits, (batch, target, vocabulary)."""
        x = self.tokens(decoder_ids)
        position = torch.arange(decoder_ids.shape[1])
        x = x + self.own(x, x, position[:, None] >= position)
        x = x + self.cross(self.norm(x), cross, attention_mask[:, None, None, :] > 0)
        return self.norm(x) @ self.tokens.weight.T


def encoder(seed=0):
    """Return the encoder, with 0.04 million parameters."""
    return _parts(seed)[0]


def decoder(seed=0):
    """Return the decoder, with 0.05 million parameters."""
    return _parts(seed)[1]


def _parts(seed):
    torch.manual_seed(seed)
    tokens = torch.nn.Embedding(VOCABULARY, WIDTH)
    return Encoder(tokens).eval(), Decoder(tokens).eval()
