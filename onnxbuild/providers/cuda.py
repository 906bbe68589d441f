"""CUDA: NVIDIA's GPUs, with cuDNN and cuBLAS. Options as onnxruntime-gpu 1.31.1 parses them."""

from onnxbuild.core.provider import (
    ARENA_EXTENSION,
    DEVICE_ID,
    MEMORY_LIMIT,
    Provider,
    TritonAccelerator,
    flag,
    number,
    word,
)
from onnxbuild.providers.vendors import nvidia

_OPTIONS = {
    "device_id": DEVICE_ID,
    "gpu_mem_limit": MEMORY_LIMIT,
    "arena_extend_strategy": ARENA_EXTENSION,
    "cudnn_conv_algo_search": word(
        "how a convolution's kernel is found: by measuring all, by a guess, or not at all",
        "EXHAUSTIVE", "HEURISTIC", "DEFAULT",
    ),
    "cudnn_conv_use_max_workspace": flag("let convolutions use all the workspace they want"),
    "cudnn_conv1d_pad_to_nc1d": flag("pad 1-D convolutions to [N, C, 1, D], not [N, C, D, 1]"),
    "do_copy_in_default_stream": flag("copy in the stream that computes; else copies may race"),
    "use_tf32": flag("multiply fp32 as TensorFloat-32 (Ampere or newer): 10 bits of mantissa"),
    "prefer_nhwc": flag("convolutions with channels last"),
    "fuse_conv_bias": flag("add a convolution's bias in cuDNN's own kernel"),
    "sdpa_kernel": number("bits that allow attention kernels; 0: ONNX Runtime's choice"),
    "enable_cuda_graph": flag("capture the run as a CUDA graph: shapes must not change"),
    "enable_skip_layer_norm_strict_mode": flag("SkipLayerNorm with sums in fp32"),
    "use_ep_level_unified_stream": flag("one stream for all of the provider's work"),
    "tunable_op_enable": flag("use what TunableOp has found"),
    "tunable_op_tuning_enable": flag("let TunableOp measure implementations while running"),
    "tunable_op_max_tuning_duration_ms": number("most milliseconds to measure one operator"),
}  # fmt: skip

PROVIDER = Provider(
    name="cuda",
    full_name="CUDAExecutionProvider",
    api_name="CUDA",
    aliases=("gpu", "nvidia", "nvidia-gpu", "cudnn", "cublas"),
    options=_OPTIONS,
    vendor=nvidia.NVIDIA,
    memory="cuda",
    distribution="onnxruntime-gpu",
    library_distributions=("nvidia-",),
    preload_dlls=True,
    preloaded_libraries=(nvidia.TENSORRT_LIBRARIES,),
    symptoms=nvidia.SYMPTOMS,
    requirement=nvidia.REQUIREMENT,
    libraries=(*nvidia.CUDA_LIBRARIES, nvidia.DRIVER_LIBRARY),
    remarks={
        "dynamic": nvidia.DYNAMIC,
        "static": (
            "CUDA computes in fp32 between each pair of QDQ nodes, which is slower than fp32 alone; "
            "static INT8 pays with TensorRT"
        ),
    },
    no_ep_context="its kernels run the nodes as they are",
    api_struct=True,
    node_name="cuda",
    node_options={"device_id": "deviceId"},
    triton=TritonAccelerator("gpu", is_implied=True),
)
