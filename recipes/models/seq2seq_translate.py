"""Texts through recipes/seq2seq.yaml's encoder and decoder, a token at a time; NumPy is all that it needs."""

import numpy as np

VOCABULARY = 320
START = 1


def samples(count=8, seed=0):
    """Yield two sources that are translated together, each the ids of its tokens, shape (length,)."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        yield [random.integers(2, VOCABULARY, random.integers(3, 20)) for _ in range(2)]


def translate(parts, sample, tokens=12):
    """Return the most likely tokens, shape (sources, tokens), and the logits of the last ones.

    A small model with random weights repeats itself, so that a token which was given is not given again.
    """
    length = max(map(len, sample))
    ids = np.stack([np.pad(each, (0, length - len(each))) for each in sample])
    mask = np.stack([np.arange(length) < len(each) for each in sample]).astype(np.int64)
    cross = parts.encoder(input_ids=ids, attention_mask=mask)["cross"]
    given = np.full((len(sample), 1), START)
    for _ in range(tokens):
        logits = parts.decoder(given, cross, mask)["logits"][:, -1]
        allowed = logits.copy()
        np.put_along_axis(allowed, given, -np.inf, axis=1)
        given = np.append(given, allowed.argmax(axis=1)[:, None], axis=1)
    return {"tokens": given[:, 1:], "logits": logits}
