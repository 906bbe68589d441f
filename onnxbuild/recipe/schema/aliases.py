"""Translate words of other tools: dtypes, modes, providers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from onnxbuild.catalog import MODES

_PREFIXES = ("torch.", "numpy.", "np.", "tf.", "jnp.", "tensor(")

_DTYPES: Mapping[str, str] = {
    "float32": "float fp32 f32 single float_ floattensor float32tensor",
    "float16": "half fp16 f16 halftensor",
    "float64": "double fp64 f64 doubletensor",
    "bfloat16": "bf16 bfloat",
    "int64": "int long integer i64 int_ longlong longtensor int64_t uint64 uint32",
    "int32": "i32 intc inttensor int32_t uint16 word",
    "int16": "short i16 int16_t shorttensor",
    "int8": "char i8 int8_t chartensor",
    "uint8": "byte ubyte u8 uint8_t bytetensor",
    "bool": "boolean bool_ booltensor logical",
    "string": "str text object",
}
"""`int` is Python's and numpy's, of 64 bits, as ids are; torch calls its int32 so."""

_MODES: Mapping[str, str] = {name: mode.words for name, mode in MODES.items()}

_PROVIDERS: Mapping[str, str] = {
    "cpu": "x86 arm mlas host",
    "cuda": "gpu nvidia nvidia-gpu cudnn cublas",
    "tensorrt": "trt tensor-rt tensor_rt",
    "nv_tensorrt_rtx": "rtx trt-rtx tensorrt_rtx tensorrt-rtx nvtensorrtrtx",
    "openvino": "intel ov openvino-gpu",
    "directml": "dml directx dx12 windows",
    "coreml": "apple mps ane metal ios macos core_ml core-ml",
    "migraphx": "amd hip",
    "qnn": "qualcomm snapdragon hexagon htp",
    "nnapi": "android",
    "webgpu": "wgpu browser",
    "dnnl": "onednn mkldnn mkl",
    "vitisai": "vitis xilinx ryzenai",
    "cann": "ascend huawei",
    "rknpu": "rockchip rknn",
    "xnnpack": "xnn",
}

_MEANINGS: Mapping[str, tuple[str, ...]] = {
    word: tuple(
        name
        for table in (_DTYPES, _MODES, _PROVIDERS)
        for name, words in table.items()
        if word in words.split()
    )
    for table in (_DTYPES, _MODES, _PROVIDERS)
    for words in table.values()
    for word in words.split()
}

_INSTEAD: Mapping[str, str] = {"bfloat16": "float32", "string": "int64"}
"""For what a recipe does not take: the dtype that it is computed or encoded in."""


def meaning(found: str, known: Collection[str]) -> str:
    """The one of `known` that a word from elsewhere stands for; empty for words not known here."""
    word = found.strip().lower().rstrip(")")
    for prefix in _PREFIXES:
        word = word.removeprefix(prefix)
    meanings = (*_MEANINGS.get(word, ()), word)
    for name in (*meanings, *(_INSTEAD.get(each, "") for each in meanings)):
        if name in known:
            return name
    return ""
