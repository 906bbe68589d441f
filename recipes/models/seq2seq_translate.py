"""A text through recipes/seq2seq.yaml's encoder and decoder, a token at a time; NumPy is all that it needs."""

import numpy as np

VOCABULARY = 320
START = 1


def samples(count=8, seed=0):
    """Yield the source's tokens, shape (length,)."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        yield random.integers(2, VOCABULARY, random.integers(3, 20))


def translate(parts, sample, tokens=12):
    """Return the most likely tokens, shape (tokens,), and the logits of the last one.

    A small model with random weights repeats itself, so that a token which was given is not given again.
    """
    mask = np.ones((1, len(sample)), np.int64)
    cross = parts.encoder(input_ids=sample[None], attention_mask=mask)["cross"]
    ids = np.array([[START]])
    for _ in range(tokens):
        logits = parts.decoder(ids, cross, mask)["logits"][0, -1]
        allowed = logits.copy()
        allowed[ids[0]] = -np.inf
        ids = np.append(ids, [[allowed.argmax()]], axis=1)
    return {"tokens": ids[0, 1:], "logits": logits}
