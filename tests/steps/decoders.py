"""transformers' decoders, tiny, with seeded weights; and what their caches are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

WORDS = 64
SIZES: dict[str, Any] = {
    "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 128,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "tie_word_embeddings": False,
    "initializer_range": 0.3,
}  # fmt: skip
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
WINDOW = {"sliding_window": 6}
LAYERS = {"layer_types": ["sliding_attention", "full_attention"]}


class Decoder(NamedTuple):
    """One architecture: the classes of its model and its config, options over SIZES, and its heads of keys."""

    model: str
    config: str
    options: Mapping[str, Any]
    heads: int = 2


DECODERS = {
    "llama": Decoder("LlamaForCausalLM", "LlamaConfig", {}),
    "gpt2": Decoder("GPT2LMHeadModel", "GPT2Config", {"n_head": 4, "n_positions": 128}, heads=4),
    "qwen2": Decoder("Qwen2ForCausalLM", "Qwen2Config", {}),
    "qwen3": Decoder("Qwen3ForCausalLM", "Qwen3Config", {}),
    "mistral": Decoder("MistralForCausalLM", "MistralConfig", WINDOW),
    "phi3": Decoder("Phi3ForCausalLM", "Phi3Config", {}),
    "gemma3": Decoder("Gemma3ForCausalLM", "Gemma3TextConfig", {**WINDOW, **LAYERS}),
    "mixtral": Decoder("MixtralForCausalLM", "MixtralConfig", EXPERTS),
}


def load(name: str) -> torch.nn.Module:
    """The network of DECODERS[name]."""
    import transformers

    decoder = DECODERS[name]
    torch.manual_seed(0)
    config = getattr(transformers, decoder.config)(**SIZES | decoder.options)
    return getattr(transformers, decoder.model)(config).eval()
