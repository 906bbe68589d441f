"""ROCm: AMD's GPUs, until ONNX Runtime 1.22."""

from onnxbuild.core.provider import (
    ARENA_EXTENSION,
    DEVICE_ID,
    MEMORY_LIMIT,
    Provider,
    flag,
    number,
)
from onnxbuild.providers.vendors import amd

_OPTIONS = {
    "device_id": DEVICE_ID,
    "gpu_mem_limit": MEMORY_LIMIT,
    "arena_extend_strategy": ARENA_EXTENSION,
    "miopen_conv_exhaustive_search": flag("measure all of MIOpen's convolutions"),
    "miopen_conv_use_max_workspace": flag("let convolutions use all the workspace they want"),
    "do_copy_in_default_stream": flag("copy in the stream that computes"),
    "tunable_op_enable": flag("use what TunableOp has found"),
    "tunable_op_tuning_enable": flag("let TunableOp measure implementations while running"),
    "tunable_op_max_tuning_duration_ms": number("most milliseconds to measure one operator"),
    "enable_hip_graph": flag("capture the run as a HIP graph"),
}

PROVIDER = Provider(
    name="rocm",
    full_name="ROCMExecutionProvider",
    options=_OPTIONS,
    vendor=amd.AMD,
    removed="ONNX Runtime has no ROCm provider since 1.23: write `migraphx`",
    symptoms=amd.SYMPTOMS,
    no_ep_context="its kernels run the nodes as they are",
)
