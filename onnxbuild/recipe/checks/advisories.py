"""Warn about variants that bring no benefit on a target; nothing is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from onnxbuild.core.recipe import Recipe, Variant
from onnxbuild.core.target import Target

_NVIDIA = frozenset({"cuda", "tensorrt", "nv_tensorrt_rtx"})


def doubts_of(recipe: Recipe) -> Iterator[str]:
    """A sentence for each variant that a target's kernels make no use of, and for what is made apart.

    Sources: ONNX Runtime's page on quantization (which formats run on which hardware), and its
    operator tables: MatMulInteger, DynamicQuantizeLinear and MatMulNBits by provider.
    """
    ahead: Any = recipe.sections.get("ahead_of_time")
    if ahead is not None and ahead.asked and all(each.environment for each in recipe.targets):
        yield (
            f"{recipe.name}: {', '.join(ahead.asked)} of ahead_of_time: made, validated and measured "
            "with the ONNX Runtime of onnxbuild's environment; every target has another"
        )
    for target in recipe.targets:
        for variant in recipe.variants:
            why = _why(variant, target)
            if why:
                yield f"{recipe.name}: variant '{variant.name}' on target '{target.name}': {why}"


def _why(variant: Variant, target: Target) -> str:
    first = target.chain[0].provider
    if variant.mode == "static" and first == "tensorrt":
        return "" if _signed(variant) else _UNSIGNED
    return _BY_MODE.get((variant.mode, "nvidia" if first in _NVIDIA else first)) or _BY_MODE.get(
        (variant.mode, first), ""
    )


_BY_MODE = {
    ("fp16", "cpu"): (
        "fp16 halves the size and gains no speed there: few of the CPU's kernels compute in it, "
        "the rest casts to fp32 and back"
    ),
    ("dynamic", "nvidia"): (
        "dynamic INT8 falls to the CPU there, with copies: DynamicQuantizeLinear has no kernel on "
        "a GPU; use fp16, or static INT8 with TensorRT"
    ),
    ("dynamic", "directml"): "dynamic INT8 falls to the CPU in part; use fp16",
    ("dynamic", "coreml"): "dynamic INT8 falls to the CPU; use fp16",
    ("dynamic", "qnn"): "its HTP runs models with QDQ nodes: use `mode: static`",
    ("static", "cuda"): (
        "CUDA computes in fp32 between each pair of QDQ nodes, which is slower than fp32 alone; "
        "static INT8 pays with TensorRT"
    ),
    ("weight_only", "tensorrt"): (
        "TensorRT has no MatMulNBits: these nodes fall to the providers after it"
    ),
    ("weight_only", "coreml"): "CoreML has no MatMulNBits: these nodes fall to the CPU",
    ("weight_only", "qnn"): "QNN has no MatMulNBits: these nodes fall to the CPU",
}
_UNSIGNED = (
    "TensorRT takes signed, symmetric INT8 alone: write `activation_type: int8, symmetric: true`"
)


def _signed(variant: Variant) -> bool:
    options: Any = variant.options
    return options.activation_type == "int8" and options.symmetric is not False
