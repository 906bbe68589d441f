"""NVIDIA: GPUs, and what CUDA says when it can't use one.

The texts are those of CUDA's runtime, cuDNN and ONNX Runtime 1.31.1.
"""

from onnxbuild.core.provider import LibraryFix, Symptom, Vendor

NVIDIA = Vendor(
    name="NVIDIA",
    pci="0x10de",
    devices=("nvidia[0-9]*", "nvhost-gpu", "dxg"),  # a PC, a Jetson, WSL
    drivers=("/proc/driver/nvidia/version", "/dev/nvhost-gpu", "/dev/dxg"),
    variable="CUDA_VISIBLE_DEVICES",
    lists="nvidia-smi -L",
    checks="nvidia-smi",
    container="docker run --gpus all ...",
)

SYMPTOMS = (
    Symptom(
        "version",
        r"CUDA driver version is insufficient|cudaErrorInsufficientDriver"
        r"|forward compatibility was attempted|no kernel image is available"
        r"|cuDNN version|CUDNN_STATUS_VERSION_MISMATCH",
    ),
    Symptom(
        "device_id",
        r"invalid device ordinal|cudaErrorInvalidDevice\b|device id \d+ is (?:not|in)valid",
    ),
    Symptom("device", r"no CUDA-capable device|cudaErrorNoDevice"),
)
REQUIREMENT = r"Require (cuDNN [\d.*]+ and CUDA [\d.*]+)"

CUDA_LIBRARIES = (
    LibraryFix(
        ("libcudart", "libcublas", "libcufft", "libcurand", "libnvrtc", "libnvJitLink"),
        distribution="onnxruntime-gpu",
        extra="cuda",
    ),
    LibraryFix(("libcudnn",), distribution="onnxruntime-gpu", extra="cudnn"),
)
DRIVER_LIBRARY = LibraryFix(("libcuda.so",), "install NVIDIA's driver, which has libcuda.so.1")

TENSORRT_LIBRARIES = "tensorrt_libs/libnv*.so.10"
"""Pattern of the libraries of the distributions tensorrt-cu*-libs, below a site folder."""

DYNAMIC = (
    "dynamic INT8 falls to the CPU there, with copies: DynamicQuantizeLinear has no kernel on "
    "a GPU; use fp16, or static INT8 with TensorRT"
)
