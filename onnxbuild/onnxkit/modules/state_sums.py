"""Sums of a module's parameters and buffers, by which a change of its state shows."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


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
