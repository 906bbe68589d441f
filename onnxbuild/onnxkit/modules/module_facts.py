"""Facts of a module that its code or its values say: its architecture, sums of its state, the memory that it takes."""

from __future__ import annotations

import itertools
import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from onnxbuild.core.axis import shape_at
from onnxbuild.core.recipe import DummyInput

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


def state_sums(module: torch.nn.Module) -> dict[str, float]:
    """Return the sum of each parameter and buffer; those that have no sum (lazy, sparse, complex) are left out."""
    import torch

    found = {}
    with torch.no_grad():
        for name, each in itertools.chain(module.named_parameters(), module.named_buffers()):
            is_plain = each.layout == torch.strided and not (
                each.is_complex() or each.is_quantized
            )
            if is_plain and not torch.nn.parameter.is_lazy(each) and not each.is_meta:
                found[name] = float(each.sum(dtype=torch.float64))
    return found


def changed_names(before: Mapping[str, float], after: Mapping[str, float]) -> list[str]:
    """Return the names in both whose sums differ; a NaN that stays one is no change."""
    return [
        name
        for name, value in after.items()
        if name in before
        and before[name] != value
        and not (math.isnan(before[name]) and math.isnan(value))
    ]


def imagined_bytes(
    module: torch.nn.Module, inputs: Sequence[DummyInput], sizes: Mapping[str, int]
) -> int | None:
    """Return the most bytes that a module's values take at once; None where forward needs real values.

    Args:
        inputs: Inputs, as the recipe declares them.
        sizes: Axis -> elements along it.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves

    held = _Held()

    class Count(TorchDispatchMode):  # type: ignore[misc] # torch's own
        def __torch_dispatch__(self, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            if all(each.alias_info is None for each in func._schema.returns):  # noqa: SLF001
                for each in tree_leaves(made):
                    if isinstance(each, torch.Tensor):
                        held.take(each, each.numel() * each.element_size())
            return made

    try:
        with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
            feeds = {
                each.name: torch.zeros(
                    shape_at(each.shape, sizes), dtype=getattr(torch, each.dtype)
                )
                for each in inputs
            }
            with Count():
                module(**feeds)
    except Exception:  # noqa: BLE001 - whatever user code raises without real values
        return None
    return held.most


class _Held:
    """Counts the bytes of what is alive."""

    def __init__(self) -> None:
        self.now = self.most = 0

    def take(self, value: object, size: int) -> None:
        self.now += size
        self.most = max(self.most, self.now)
        weakref.finalize(value, self._let_go, size)

    def _let_go(self, size: int) -> None:
        self.now -= size
