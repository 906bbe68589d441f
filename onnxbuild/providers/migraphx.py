"""MIGraphX: AMD's GPUs."""

from onnxbuild.core.provider import ARENA_EXTENSION, DEVICE_ID, MEMORY_LIMIT, Provider, flag, path
from onnxbuild.providers.vendors import amd

_OPTIONS = {
    "device_id": DEVICE_ID,
    "migraphx_fp16_enable": flag("compute in fp16"),
    "migraphx_bf16_enable": flag("compute in bf16"),
    "migraphx_fp8_enable": flag("compute in fp8"),
    "migraphx_int8_enable": flag("compute in int8"),
    "migraphx_int8_calibration_table_name": path("file of ranges"),
    "migraphx_use_native_calibration_table": flag("that file is in MIGraphX's own format"),
    "migraphx_exhaustive_tune": flag("measure all kernels"),
    "migraphx_model_cache_dir": path("folder of compiled models"),
    "migraphx_mem_limit": MEMORY_LIMIT,
    "migraphx_arena_extend_strategy": ARENA_EXTENSION,
}

PROVIDER = Provider(
    name="migraphx",
    full_name="MIGraphXExecutionProvider",
    api_name="MIGraphX",
    aliases=("amd", "hip"),
    options=_OPTIONS,
    vendor=amd.AMD,
    distribution="onnxruntime-migraphx",
    distribution_note="from AMD",
    symptoms=amd.SYMPTOMS,
)
