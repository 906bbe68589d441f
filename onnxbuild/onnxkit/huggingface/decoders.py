"""Inputs, axes and state of a model that writes text, as its config says them."""

from collections.abc import Mapping
from typing import Any

from onnxbuild.core.source_error import SourceError
from onnxbuild.onnxkit.sources.outline import SourceOutline, SourceValue
from onnxbuild.onnxkit.sources.parts import BATCH

SEQUENCE, PAST = "sequence", "past"
PARAMETER, POSITIONS = "past_key_values", "position_ids"

_SEQUENCE_MAX, _PAST_MAX = 128, 1024
_SEQUENCE_EXAMPLE, _PAST_EXAMPLE = 8, 16

_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
_KEY_HEADS = ("num_key_value_heads", "num_kv_heads")
_WIDTH = ("hidden_size", "n_embd", "d_model")
_MOST = ("max_position_embeddings", "n_positions", "max_seq_len")

_WITHOUT_POSITIONS = frozenset({"bloom", "cpmant", "mpt"})
"""Types of models that make their own positions, of the mask or of the size of the cache."""

_FURTHER = frozenset({
    "kv_lora_rank", "layers_block_type", "hybrid_override_pattern", "attn_layer_indices", "attn_layer_period",
    "conv_L_cache", "state_size", "linear_num_key_heads", "mamba_d_state",
})  # fmt: skip
"""Keys of a config whose cache is not keys and values of one shape."""


def decoder_outline(config: Mapping[str, Any], *, has_state: bool) -> SourceOutline:
    """Return inputs, axes and the state of a decoder.

    Args:
        has_state: The recipe declares the state by itself.

    Raises:
        SourceError: The config does not say what is in the cache.
    """
    state = {} if has_state else _state(config)
    shape = (BATCH, SEQUENCE)
    rows = _first(config, ("vocab_size",)) or 0
    inputs = [
        SourceValue("input_ids", "int64", shape, rows),
        SourceValue(
            "attention_mask", "int64", (BATCH, f"{PAST} + {SEQUENCE}"), values={"mask": "left"}
        ),
        SourceValue(POSITIONS, "int64", shape, values={"arange": PAST}),
    ]
    if config.get("model_type") in _WITHOUT_POSITIONS:
        inputs.pop()
    return SourceOutline(inputs=tuple(inputs), axes=decoder_axes(config), state=state)


def decoder_axes(config: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return the sizes of a decoder's axes, as far as its positions go."""
    most = _first(config, _MOST) or _PAST_MAX + _SEQUENCE_MAX
    new, past = min(_SEQUENCE_EXAMPLE, max(1, most // 4)), min(_PAST_EXAMPLE, max(1, most // 2))
    return {
        BATCH: {"min": 1, "max": 8, "example": 2},
        SEQUENCE: {"min": 1, "max": max(new, min(_SEQUENCE_MAX, most - past)), "example": new},
        PAST: {"min": 0, "max": max(past, min(_PAST_MAX, most - new)), "example": past},
    }


def _state(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys and values of each layer."""
    layers, heads, width = (_first(config, keys) for keys in (_LAYERS, _HEADS, _WIDTH))
    key_heads = _first(config, _KEY_HEADS) or heads
    size = _first(config, ("head_dim",)) or (width // heads if width and heads else None)
    if not layers or not key_heads or not size or config.keys() & _FURTHER:
        kind = config.get("model_type", "no model_type")
        raise SourceError(
            f"config.json ({kind}) does not say what is in the model's cache: it is not keys and values of "
            "one shape for each layer",
            "let `onnxbuild init FOLDER` run the model and write the recipe; or write `state` (docs/generation.md)",
        )
    return {
        PARAMETER: {
            "each": {"layer": layers, "part": ["key", "value"]},
            "shape": [BATCH, key_heads, PAST, size],
        }
    }


def _first(config: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    """The first of these that is a positive int."""
    found = (config.get(key) for key in keys)
    return next((each for each in found if type(each) is int and each > 0), None)
