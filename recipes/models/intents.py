"""What a request asks for: a small classifier of sentences, trained by intents_train.py, and its pipeline in Python."""

import itertools
from pathlib import Path

import numpy as np
import torch
from torch import nn

HERE = Path(__file__).parent
NAMES = ("weather", "music", "timer", "lights")
# fmt: off
CITIES = ("Zürich", "São Paulo", "Kraków", "Malmö", "Paris", "New York", "Oslo", "Łódź", "Bogotá", "Kyoto")
DAYS = ("today", "tomorrow", "on Monday", "on Friday", "this weekend")
ARTISTS = ("Beyoncé", "Björk", "Sigur Rós", "Nina Simone", "Daft Punk", "Fauré", "Dvořák", "Adele", "ABBA", "Muse")
TIMES = ("5 minutes", "half an hour", "90 seconds", "a quarter of an hour", "2 hours")
ROOMS = ("kitchen", "hall", "bedroom", "garden", "café", "garage", "office", "nursery", "bathroom", "attic")
LEVELS = ("10%", "half", "full brightness", "warm white", "blue")
# fmt: on
REQUESTS = {
    "weather": (
        (
            "Will it rain in {} {}?",
            "How warm will it be in {} {}?",
            "Is it windy in {} {}",
            "Do I need an umbrella in {} {}?",
            "The forecast for {} {}, please",
        ),
        CITIES,
        DAYS,
    ),
    "music": (
        (
            "Play something by {} {}",
            "Put on the new album of {} {}!",
            "I want to hear {} {}",
            "Turn up that song of {} {}",
            "Who sang with {} {}?",
        ),
        ARTISTS,
        DAYS,
    ),
    "timer": (
        (
            "Wake me in {1} in the {0}",
            "Set a timer in the {0}: {1}",
            "Remind me of the {0} in {1}",
            "How much is left of the {1} for the {0}?",
            "Count down {1} for the {0}",
        ),
        ROOMS,
        TIMES,
    ),
    "lights": (
        (
            "Turn the {} lamp to {}",
            "Dim the lights in the {} to {}.",
            "Make the {} {}, would you",
            "Switch off the {} lights, not to {}",
            "It is dark in the {}: set {}",
        ),
        ROOMS,
        LEVELS,
    ),
}  # fmt: skip


def requests():
    """(text, number of its intent), in an order that mixes them."""
    found = [
        (template.format(first, second), number)
        for number, (templates, firsts, seconds) in enumerate(REQUESTS[name] for name in NAMES)
        for template, first, second in itertools.product(templates, firsts, seconds)
    ]
    order = np.random.default_rng(0).permutation(len(found))
    return [found[n] for n in order]


def held_out():
    """A fifth of the requests; the others are trained on."""
    return requests()[::5]


class Intents(nn.Module):
    """Logits, (batch, 4), of token ids and their mask, (batch, sequence)."""

    def __init__(self, pieces, width=48):
        super().__init__()
        self.embedding = nn.Embedding(pieces, width)
        self.hidden = nn.Linear(width, width)
        self.head = nn.Linear(width, len(NAMES))

    def forward(self, input_ids, attention_mask):
        hidden = torch.nn.functional.gelu(self.hidden(self.embedding(input_ids)))
        weights = attention_mask.unsqueeze(-1).to(hidden.dtype)
        return self.head((hidden * weights).sum(1) / weights.sum(1))


def load():
    """The trained network."""
    with np.load(HERE / "intents.npz") as held:
        weights = {name: torch.from_numpy(held[name].astype(np.float32)) for name in held.files}
    model = Intents(len(weights["embedding.weight"]))
    model.load_state_dict(weights)
    return model.eval()


def encode(texts):
    """Ids and mask by `tokenizers`, padded to the longest."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(HERE / "intents_tokenizer.json"))
    tokenizer.enable_truncation(64)
    tokenizer.enable_padding()
    found = tokenizer.encode_batch(list(texts))
    ids, mask = ([getattr(each, key) for each in found] for key in ("ids", "attention_mask"))
    return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}


def samples():
    """Token ids of some requests, for the plain model."""
    for start in range(0, 32, 4):
        yield encode([text for text, _ in held_out()[start : start + 4]])


def own():
    """The pipeline as it stands in Python: text in, name and probabilities out."""
    model = load()

    def classify(text):
        with torch.inference_mode():
            probabilities = model(**encode(text.tolist())).softmax(-1)
        names = np.array(NAMES)[probabilities.argmax(-1).numpy()]
        return {"label": names, "probabilities": probabilities.numpy()}

    return classify


def expected(count=200):
    """(raw inputs, what the pipeline in Python makes of them), one request at a time and then some in a batch."""
    classify = own()
    texts = [text for text, _ in held_out()[:count]]
    for batch in [*([each] for each in texts[:-32]), texts[-32:-16], texts[-16:]]:
        text = np.array(batch, object)
        yield {"text": text}, classify(text)


def evaluation(batch=20):
    """(texts, names of their intents) of the held-out share."""
    found = held_out()
    for start in range(0, len(found), batch):
        some = found[start : start + batch]
        yield {"text": np.array([text for text, _ in some], object)}, [NAMES[n] for _, n in some]


def accuracy(outputs, labels):
    """The share of requests whose label is the right one."""
    hits = [each["label"] == np.array(truth) for each, truth in zip(outputs, labels, strict=True)]
    return float(np.concatenate(hits).mean())
