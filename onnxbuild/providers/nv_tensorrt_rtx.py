"""TensorRT RTX: NVIDIA's consumer GPUs, engines finished where they run."""

from onnxbuild.core.provider import Provider, Symptom
from onnxbuild.providers.vendors import nvidia

PROVIDER = Provider(
    name="nv_tensorrt_rtx",
    full_name="NvTensorRTRTXExecutionProvider",
    api_name="NvTensorRtRtx",
    aliases=("rtx", "trt-rtx", "tensorrt_rtx", "tensorrt-rtx", "nvtensorrtrtx"),
    vendor=nvidia.NVIDIA,
    symptoms=(*nvidia.SYMPTOMS, Symptom("version", "TensorRT version mismatch")),
    requirement=nvidia.REQUIREMENT,
    libraries=(*nvidia.CUDA_LIBRARIES, nvidia.DRIVER_LIBRARY),
    remarks={"dynamic": nvidia.DYNAMIC},
    compiles_for_gpu=True,
)
