"""Sentence embeddings of all-MiniLM-L6-v2 as sentence-transformers makes them: mean of tokens, length 1."""

import torch
from minilm import corpus, encode, load


def expected(batch=4):
    """(token ids and mask, embeddings by PyTorch) of held-out sentences."""
    model = load().eval()
    for feeds in encode(corpus(1), batch):
        mask = feeds["attention_mask"].unsqueeze(-1).float()
        with torch.inference_mode():
            hidden = model.bert(**feeds).last_hidden_state
        pooled = (hidden * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        embedding = torch.nn.functional.normalize(pooled, dim=-1)
        yield feeds, {"embedding": embedding.numpy()}
