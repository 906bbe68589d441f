"""transformers' models with an encoder and a decoder, tiny, with seeded weights that give many different tokens."""

from typing import Any

import torch

WORDS = 64
_SIZES: dict[str, Any] = {
    "vocab_size": WORDS, "d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "decoder_ffn_dim": 48, "encoder_ffn_dim": 48, "init_std": 0.3,
    "tie_word_embeddings": False, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 3,
}  # fmt: skip


def t5() -> torch.nn.Module:
    """Relative positions, and heads that are not as wide as the model."""
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(1)
    config = T5Config(
        vocab_size=WORDS, d_model=24, d_kv=8, d_ff=48, num_layers=2, num_decoder_layers=2, num_heads=4,
        initializer_factor=4.0, decoder_start_token_id=0, pad_token_id=0, eos_token_id=1, tie_word_embeddings=False,
    )  # fmt: skip
    return T5ForConditionalGeneration(config)


def bart() -> torch.nn.Module:
    """Learned positions."""
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(1)
    return BartForConditionalGeneration(BartConfig(**_SIZES, max_position_embeddings=128))


def whisper() -> torch.nn.Module:
    """A spectrogram of one length goes into the encoder, and there is no mask."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    torch.manual_seed(1)
    config = WhisperConfig(
        **_SIZES, num_mel_bins=8, max_source_positions=30, max_target_positions=64,
        suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    return WhisperForConditionalGeneration(config)


MODELS = {"t5": t5, "bart": bart, "whisper": whisper}
