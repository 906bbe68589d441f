"""The execution providers that ONNX Runtime knows, by their short names and its own."""

from __future__ import annotations

import re
from collections.abc import Mapping

CPU = "cpu"
_FULL = re.compile(r"[A-Za-z0-9_]+ExecutionProvider")

PROVIDERS: Mapping[str, str] = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "directml": "DmlExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "rocm": "ROCMExecutionProvider",
    "migraphx": "MIGraphXExecutionProvider",
    "qnn": "QNNExecutionProvider",
    "webgpu": "WebGpuExecutionProvider",
    "xnnpack": "XnnpackExecutionProvider",
    "dnnl": "DnnlExecutionProvider",
    "nv_tensorrt_rtx": "NvTensorRTRTXExecutionProvider",
    "acl": "ACLExecutionProvider",
    "nnapi": "NnapiExecutionProvider",
    "vitisai": "VitisAIExecutionProvider",
    "cann": "CANNExecutionProvider",
    "rknpu": "RknpuExecutionProvider",
    "azure": "AzureExecutionProvider",
}
"""Short name in recipes -> ONNX Runtime's."""

SHORT_NAMES: Mapping[str, str] = {full: short for short, full in PROVIDERS.items()}


def full_name(provider: str) -> str:
    """ONNX Runtime's name of a provider, given by its short name or its full one."""
    return PROVIDERS.get(provider, provider)


def short_name(provider: str) -> str:
    """The short name of a provider, given by either; the full one where there is no short one."""
    return SHORT_NAMES.get(provider, provider)


def is_full_name(name: str) -> bool:
    """Whether it has the form of ONNX Runtime's names: a newer one may know others than these."""
    return _FULL.fullmatch(name) is not None
