"""transformers' Llama, small, on bytes; weights are seeded, not trained."""

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

VOCABULARY = 256
TEXTS = (
    "a",
    "The cache",
    "of keys and values goes out of one call",
    "and into the next:",
    "past",
    "is as long as all that came before it.",
    "Prompts of different lengths",
    "are padded on their left.",
)


def load(seed=0, layers=2, width=64):
    """The network, 0.1 million parameters; its forward takes and returns a Cache."""
    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=width, intermediate_size=2 * width,
        num_hidden_layers=layers, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        max_position_embeddings=512, bos_token_id=None, eos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config).eval()


def prompts():
    """Texts to go on with, as bytes."""
    for text in TEXTS:
        yield np.frombuffer(text.encode(), np.uint8).astype(np.int64)


def calibration():
    """Whole prompts, without a cache: onnxbuild feeds them in pieces, and the model itself fills the cache."""
    for ids in prompts():
        length = len(ids)
        yield {
            "input_ids": ids[None],
            "attention_mask": np.ones((1, length), np.int64),
            "position_ids": np.arange(length)[None],
        }
