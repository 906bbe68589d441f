"""Text in, sentence embeddings out, as sentence-transformers makes them of all-MiniLM-L6-v2: mean of tokens, length 1."""

import numpy as np
import torch
from minilm import MODEL_DIR, corpus, load
from tokenizers import Tokenizer

LONGEST = 128


def own():
    """The pipeline as it stands in Python: strings -> embeddings."""
    model = load().eval()
    tokenizer = Tokenizer.from_file(str(MODEL_DIR / "tokenizer.json"))
    tokenizer.enable_truncation(LONGEST)
    tokenizer.enable_padding()

    def embed(text):
        found = tokenizer.encode_batch(text.tolist())
        ids, mask = (
            torch.tensor([getattr(each, key) for each in found])
            for key in ("ids", "attention_mask")
        )
        with torch.inference_mode():
            hidden = model.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).float()
        pooled = (hidden * weights).sum(1) / weights.sum(1).clamp(min=1e-9)
        return {"embedding": torch.nn.functional.normalize(pooled, dim=-1).numpy()}

    return embed


def expected(count=200, batch=4):
    """(text, embeddings by PyTorch) of held-out sentences."""
    embed = own()
    sentences = corpus(1)[:count]
    for start in range(0, len(sentences), batch):
        text = np.array(sentences[start : start + batch], object)
        yield {"text": text}, embed(text)
