"""Warn about variants that bring no benefit on a target; nothing is refused."""

from __future__ import annotations

from collections.abc import Iterator

from onnxbuild.core.recipe import Recipe
from onnxbuild.document.faults import Remark
from onnxbuild.providers import named


def doubts_of(recipe: Recipe) -> Iterator[Remark]:
    """Yield a sentence for each variant that a target's kernels make no use of.

    Sources of the providers' remarks: ONNX Runtime's page on quantization (which formats run on which
    hardware), and its operator tables: MatMulInteger, DynamicQuantizeLinear and MatMulNBits by provider.
    """
    for target in recipe.targets:
        for variant in recipe.variants:
            why = named(target.chain[0].provider).remark(variant.mode, variant.options)
            if why:
                text = f"{recipe.name}: variant '{variant.name}' on target '{target.name}': {why}"
                yield Remark(text, variant.location)
