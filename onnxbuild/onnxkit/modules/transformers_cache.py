"""A Cache of transformers', made of flat tensors and taken apart into them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from onnxbuild.core.errors import StepError, did_you_mean

if TYPE_CHECKING:
    import torch

    Tensors = Mapping[tuple[int, str], torch.Tensor]

LAYER, PART = "layer", "part"
"""The words of a tensor of a Cache in `each`."""

KEY, VALUE = "key", "value"
CROSS = "cross_"
"""Begins the parts of the cross-attention's cache."""

_LINEAR = {"conv": "conv_states", "recurrent": "recurrent_states"}
"""Part of a layer without keys, of a state-space model's -> the attribute that holds it."""

PARTS = (KEY, VALUE, f"{CROSS}{KEY}", f"{CROSS}{VALUE}", *_LINEAR)


def takes_cache(annotation: object) -> bool:
    """Return whether a parameter's annotation names a Cache of transformers'."""
    text = annotation if isinstance(annotation, str) else str(annotation)
    return "Cache" in text


def place_of(of: Mapping[str, int | str], name: str, where: str) -> tuple[int, str]:
    """Return (layer, part) of a tensor.

    Raises:
        StepError: `each` has other words, or a part that no Cache has.
    """
    layer, part = of.get(LAYER), of.get(PART)
    if len(of) != len((LAYER, PART)) or not isinstance(layer, int):
        raise StepError(
            f"the tensors of state '{name}' differ in {', '.join(of)}; forward takes a Cache of transformers', whose "
            f"tensors have a {LAYER} and a {PART}",
            where=where,
            fix=f"write `each: {{{LAYER}: 4, {PART}: [{KEY}, {VALUE}]}}`",
        )
    if part not in PARTS:
        raise StepError(
            f"state '{name}' has a part '{part}'; the parts of a Cache are {', '.join(PARTS)}",
            where=where,
            fix=did_you_mean(str(part), PARTS) or f"write `{PART}: [{KEY}, {VALUE}]`",
        )
    return layer, str(part)


def is_cross(place: tuple[int, str]) -> bool:
    """Return whether a tensor is of cross-attention."""
    return place[1].startswith(CROSS)


def new_cache(places: Iterable[tuple[int, str]], config: Any) -> Any:
    """An empty DynamicCache, which takes any number of layers unless some are of a state-space model.

    Args:
        places: (layer, part) of the tensors that are declared.
        config: The model's, which says which layers are of which kind; None where it has none.
    """
    from transformers import DynamicCache

    is_linear = any(part in _LINEAR for _, part in places)
    return DynamicCache(config=config) if is_linear else DynamicCache()


def cache_of(tensors: Tensors, config: Any) -> Any:
    """A Cache that holds these tensors: a DynamicCache, or an EncoderDecoderCache where some are of cross-attention.

    All layers of attention keep all keys, those with a sliding window, too: the mask leaves the old ones out.

    Args:
        config: The model's, which says which layers are of which kind; None where it has none.
    """
    from transformers import EncoderDecoderCache

    cross = {(n, p.removeprefix(CROSS)): t for (n, p), t in tensors.items() if p.startswith(CROSS)}
    own = {(n, p): t for (n, p), t in tensors.items() if not p.startswith(CROSS)}
    if not cross:
        return _dynamic(own, config)
    cache = EncoderDecoderCache(_dynamic(own, None), _dynamic(cross, None))
    cache.is_updated = dict.fromkeys({n for n, _ in cross}, True)  # by the flag, not by a size
    return cache


def _dynamic(tensors: Tensors, config: Any) -> Any:
    from transformers import DynamicCache
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    if any(part in _LINEAR for _, part in tensors):
        cache = DynamicCache(config=config)
    else:
        count = 1 + max((n for n, _ in tensors), default=-1)
        cache = DynamicCache([(None, None)] * count)
    for (n, part), tensor in tensors.items():
        layer = cache.layers[n]
        if part in _LINEAR:
            _fill_linear(layer, _LINEAR[part], tensor)
            continue
        if isinstance(layer, DynamicSlidingWindowLayer):
            cache.layers[n] = layer = DynamicLayer()
        setattr(layer, f"{part}s", tensor)
        layer.dtype, layer.device, layer.is_initialized = tensor.dtype, tensor.device, True
    return cache


def _fill_linear(layer: Any, attribute: str, tensor: torch.Tensor) -> None:
    """Set a state of a layer of a state-space model, as after a first call."""
    getattr(layer, attribute)[0] = tensor.clone()  # the layer writes into it
    getattr(layer, f"is_{attribute}_initialized")[0] = True
    layer.has_previous_state[0] = True
    layer.dtype, layer.device = tensor.dtype, tensor.device
    if attribute == _LINEAR["conv"]:
        layer.conv_kernel_size[0] = tensor.shape[-1]


def tensors_of(cache: Any) -> dict[tuple[int, str], torch.Tensor]:
    """(layer, part) -> tensor of a Cache."""
    if hasattr(cache, "cross_attention_cache"):
        own = dict(_layers(cache.self_attention_cache))
        crossed = _layers(cache.cross_attention_cache)
        return own | {(n, CROSS + part): tensor for (n, part), tensor in crossed}
    return dict(_layers(cache))


def _layers(cache: Any) -> Iterator[tuple[tuple[int, str], torch.Tensor]]:
    for n, layer in enumerate(cache.layers):
        for part in (KEY, VALUE):
            tensor = getattr(layer, f"{part}s", None)
            if tensor is not None:
                yield (n, part), tensor
        for part, attribute in _LINEAR.items():
            tensor = getattr(layer, attribute, {}).get(0)
            if tensor is not None:
                yield (n, part), tensor
