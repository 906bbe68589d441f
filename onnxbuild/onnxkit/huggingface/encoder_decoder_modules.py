"""The two graphs of a model with an encoder and a decoder, as modules over the whole model of transformers'."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from onnxbuild.onnxkit.huggingface.encoder_decoders import CROSS, ENCODER

if TYPE_CHECKING:
    import torch

WHOLE = "model"
"""Attribute of both modules: the whole model."""


def part_of(model: torch.nn.Module, part: str) -> torch.nn.Module:
    """Return the encoder or the decoder of a whole model."""
    return _encoder(model) if part == ENCODER else _decoder(model)


def _encoder(model: torch.nn.Module) -> torch.nn.Module:
    """A module that returns the keys and values of the decoder's cross-attention.

    The decoder runs on one token, since its layers make these; the exporter drops all else of it.
    """
    import torch

    class Encoder(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            self.add_module(WHOLE, model)

        def forward(self, **inputs: torch.Tensor) -> dict[str, torch.Tensor]:
            rows = next(iter(inputs.values())).shape[0]
            token = torch.zeros((rows, 1), dtype=torch.int64)
            found = self.model(**inputs, decoder_input_ids=token, use_cache=True)
            layers = found.past_key_values.cross_attention_cache.layers
            return {
                f"{part}.{n}": tensor
                for n, layer in enumerate(layers)
                for part, tensor in zip(CROSS, (layer.keys, layer.values), strict=True)
            }

    Encoder.forward.__signature__ = inspect.signature(type(model).forward)  # type: ignore[attr-defined]
    Encoder.__name__ = f"{type(model).__name__}Encoder"
    return Encoder().eval()


def _decoder(model: torch.nn.Module) -> torch.nn.Module:
    """A module of one call of the decoder, whose cross-attention finds its keys and values in the cache."""
    import torch
    from transformers.modeling_outputs import BaseModelOutput

    class Decoder(torch.nn.Module):  # type: ignore[misc] # torch is Any here
        def __init__(self) -> None:
            super().__init__()
            self.add_module(WHOLE, model)
            self.config = model.config

        def forward(
            self,
            decoder_input_ids: torch.Tensor,
            attention_mask: torch.Tensor | None = None,
            past_key_values: EncoderDecoderCache | None = None,  # type: ignore[name-defined] # noqa: F821
        ) -> dict[str, Any]:
            assert past_key_values is not None
            cross = past_key_values.cross_attention_cache.layers[0].keys
            masked = {} if attention_mask is None else {"attention_mask": attention_mask}
            found = self.model(
                encoder_outputs=BaseModelOutput(
                    cross.transpose(1, 2).flatten(2)
                ),  # its size alone is read
                decoder_input_ids=decoder_input_ids,
                past_key_values=past_key_values,
                use_cache=True,
                **masked,
            )
            return {"logits": found.logits}

    Decoder.__name__ = f"{type(model).__name__}Decoder"
    return Decoder().eval()
