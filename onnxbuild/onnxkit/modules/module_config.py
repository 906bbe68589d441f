"""A module's own description of its architecture, for fusions that need it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

_HEADS = ("num_attention_heads", "num_heads", "n_head", "encoder_attention_heads")
_HIDDEN = ("hidden_size", "d_model", "n_embd", "dim")


def describe_module(module: torch.nn.Module) -> dict[str, str | int | None]:
    """`model_type`, `num_heads`, `hidden_size`: of the outermost `.config` that has them.

    HuggingFace models carry one; if none has heads, the first
    torch.nn.MultiheadAttention does. None for what nothing describes.
    """
    configs = list(_configs(module))
    heads, hidden = _first_int(configs, _HEADS), _first_int(configs, _HIDDEN)
    if heads is None:
        heads, hidden = _attention_sizes(module)
    return {"model_type": _model_type(configs), "num_heads": heads, "hidden_size": hidden}


def _configs(module: torch.nn.Module) -> Iterator[object]:
    for each in module.modules():
        config = getattr(each, "config", None)
        if config is not None:
            yield config


def _model_type(configs: list[object]) -> str | None:
    for config in configs:
        value = _read(config, "model_type")
        if isinstance(value, str) and value:
            return value
    return None


def _first_int(configs: list[object], names: tuple[str, ...]) -> int | None:
    for config in configs:
        for name in names:
            value = _read(config, name)
            if isinstance(value, int) and not isinstance(value, bool):
                return value
    return None


def _attention_sizes(module: torch.nn.Module) -> tuple[int | None, int | None]:
    import torch

    for each in module.modules():
        if isinstance(each, torch.nn.MultiheadAttention):
            return int(each.num_heads), int(each.embed_dim)
    return None, None


def _read(config: object, name: str) -> Any:
    return config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)
