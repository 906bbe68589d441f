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


class BartDecoder(torch.nn.Module):
    """The decoder of a BART, whose cross-attention's keys and values are in its cache."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(
        self,
        input_ids: torch.Tensor,
        encoder_attention_mask: torch.Tensor,
        past_key_values: "EncoderDecoderCache",  # noqa: F821, UP037
    ) -> dict[str, object]:
        """Logits and the new cache."""
        cross = past_key_values.cross_attention_cache.layers[0].keys
        found = self.model.model.decoder(
            input_ids=input_ids,
            encoder_hidden_states=cross.transpose(1, 2).flatten(2),  # its size alone is read
            encoder_attention_mask=encoder_attention_mask,
            past_key_values=past_key_values,
            use_cache=True,
        )
        return {"logits": self.model.lm_head(found.last_hidden_state)}


def bart() -> torch.nn.Module:
    """BART's decoder."""
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(0)
    config = BartConfig(
        vocab_size=WORDS, d_model=32, encoder_layers=1, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, decoder_ffn_dim=48, encoder_ffn_dim=48, max_position_embeddings=128,
        init_std=0.3, tie_word_embeddings=False,
    )  # fmt: skip
    return BartDecoder(BartForConditionalGeneration(config)).eval()


def mamba() -> torch.nn.Module:
    """A Mamba, which goes on from a state one token at a time."""
    from transformers import MambaConfig, MambaForCausalLM

    torch.manual_seed(0)
    config = MambaConfig(
        vocab_size=WORDS, hidden_size=16, state_size=4, num_hidden_layers=2, conv_kernel=4, expand=2,
        initializer_range=0.3, pad_token_id=0, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False,
    )  # fmt: skip
    return MambaForCausalLM(config).eval()


def jamba() -> torch.nn.Module:
    """Layers of a state-space model and of attention by turns, and a mixture of experts."""
    from transformers import JambaConfig, JambaForCausalLM

    config = JambaConfig(**SIZES | {
        "num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2,
        "expert_layer_offset": 1, "num_experts": 4, "mamba_d_state": 4, "mamba_dt_rank": 4, "use_mamba_kernels": False,
    })  # fmt: skip
    return JambaForCausalLM(config).eval()


def bamba() -> torch.nn.Module:
    """A layer of attention between two of another state-space model."""
    from transformers import BambaConfig, BambaForCausalLM

    config = BambaConfig(**SIZES | {
        "num_hidden_layers": 3, "attn_layer_indices": [1], "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 4,
        "mamba_chunk_size": 8,
    })  # fmt: skip
    return BambaForCausalLM(config).eval()


def lfm2() -> torch.nn.Module:
    """Convolutions, whose states have no recurrent part, and attention."""
    from transformers import Lfm2Config, Lfm2ForCausalLM

    kinds = ["conv", "full_attention", "conv", "full_attention"]
    config = Lfm2Config(
        **SIZES | {"num_hidden_layers": 4, "layer_types": kinds, "conv_L_cache": 3}
    )
    return Lfm2ForCausalLM(config).eval()


def falcon() -> torch.nn.Module:
    """One head of keys for all, which the config does not say by the usual key."""
    from transformers import FalconConfig, FalconForCausalLM

    config = FalconConfig(
        vocab_size=WORDS, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, multi_query=True,
        new_decoder_architecture=False, alibi=False, initializer_range=0.3, max_position_embeddings=128,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False,
    )  # fmt: skip
    return FalconForCausalLM(config).eval()


def vaultgemma() -> torch.nn.Module:
    """A Gemma with a sliding window in every other layer."""
    from transformers import VaultGemmaConfig, VaultGemmaForCausalLM

    return VaultGemmaForCausalLM(
        VaultGemmaConfig(**SIZES | WINDOW | {"query_pre_attn_scalar": 8})
    ).eval()


DRAFTED = {
    "mamba": mamba, "jamba": jamba, "bamba": bamba, "lfm2": lfm2, "falcon": falcon, "vaultgemma": vaultgemma,
}  # fmt: skip
"""Folders whose cache `init` finds by a run."""

BOTH = {"grows", "replaced"}
UPDATES = {"mamba": {"replaced"}, "jamba": BOTH, "bamba": BOTH, "lfm2": BOTH}
"""Name -> what calls do to the cache, where it does not only grow."""
