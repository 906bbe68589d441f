"""transformers' Llama, small, on bytes; llama_train.py trained it on the pages of docs/."""

from pathlib import Path

import numpy as np
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

WEIGHTS = Path(__file__).parent.parent / "weights" / "llama.safetensors"
SENTENCES = Path(__file__).parent / "sentences.txt"
TEXTS = (
    "A recipe has ",
    "The cache of keys and values ",
    "onnxbuild run recipes/",
    "If a gate fails, ",
    "| file | ",
    "Calibration data ",
    "The weights of the model are",
    "Each variant is compared with ",
)


def untrained():
    """The network, 0.6 million parameters; its forward takes and returns a Cache."""
    config = LlamaConfig(
        vocab_size=256, hidden_size=128, intermediate_size=256, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, head_dim=32, max_position_embeddings=512,
        tie_word_embeddings=True, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def load():
    """The trained network; one table is the embedding and the head."""
    model = untrained()
    weights = {name: each.float() for name, each in load_file(WEIGHTS).items()}
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert missing == ["lm_head.weight"], missing  # the table
    assert not unexpected, unexpected
    return model.eval()


def as_ids(text):
    """One token a byte."""
    return np.frombuffer(text.encode(), np.uint8).astype(np.int64)


def prompts():
    """Texts to go on with."""
    yield from map(as_ids, TEXTS)


def calibration():
    """Whole texts, without a cache: onnxbuild feeds them in pieces, and the model itself fills the cache."""
    ids = as_ids(SENTENCES.read_text(encoding="utf-8"))
    for start in range(0, len(ids) - 256, 256):
        yield {
            "input_ids": ids[None, start : start + 256],
            "attention_mask": np.ones((1, 256), np.int64),
            "position_ids": np.arange(256)[None],
        }
