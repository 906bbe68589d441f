"""What each execution provider takes as options: names, types, ranges, allowed words.

Those of ONNX Runtime 1.31: the strings that the libraries of its packages parse (for CUDA and
TensorRT read off onnxruntime-gpu 1.31.1's), types and ranges from the pages below SOURCE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

SOURCE = "https://onnxruntime.ai/docs/execution-providers/"


@dataclass(frozen=True, slots=True)
class ProviderOption:
    """One option of one provider.

    Attributes:
        type: What a recipe writes.
        help: One line.
        minimum: Least number.
        maximum: Greatest number.
        choices: All the words that it takes; empty for any.
        spelling: How ONNX Runtime spells (false, true).
    """

    type: Literal["boolean", "integer", "string"]
    help: str
    minimum: int | None = None
    maximum: int | None = None
    choices: tuple[str, ...] = ()
    spelling: tuple[str, str] = ("0", "1")

    def written(self, value: object) -> str:
        """A value of the recipe as ONNX Runtime takes it."""
        return self.spelling[value] if isinstance(value, bool) else str(value)


def _flag(text: str, *, spelling: tuple[str, str] = ("0", "1")) -> ProviderOption:
    return ProviderOption("boolean", text, spelling=spelling)


def _word(text: str, *choices: str) -> ProviderOption:
    return ProviderOption("string", text, choices=choices)


def _number(text: str, minimum: int = 0, maximum: int | None = None) -> ProviderOption:
    return ProviderOption("integer", text, minimum, maximum)


_CAPITAL = ("False", "True")
_DEVICE = _number("which device, from 0")
_LIMIT = _number("most bytes of device memory for the arena", 1)
_TO_DOUBLE, _TO_NEED = "kNextPowerOfTwo", "kSameAsRequested"
_ARENA = _word(
    "how the arena grows: to a power of two, or by what is needed", _TO_DOUBLE, _TO_NEED
)

_CUDA = {
    "device_id": _DEVICE,
    "gpu_mem_limit": _LIMIT,
    "arena_extend_strategy": _ARENA,
    "cudnn_conv_algo_search": _word(
        "how a convolution's kernel is found: by measuring all, by a guess, or not at all",
        "EXHAUSTIVE", "HEURISTIC", "DEFAULT",
    ),
    "cudnn_conv_use_max_workspace": _flag("let convolutions use all the workspace they want"),
    "cudnn_conv1d_pad_to_nc1d": _flag("pad 1-D convolutions to [N, C, 1, D], not [N, C, D, 1]"),
    "do_copy_in_default_stream": _flag("copy in the stream that computes; else copies may race"),
    "use_tf32": _flag("multiply fp32 as TensorFloat-32 (Ampere or newer): 10 bits of mantissa"),
    "prefer_nhwc": _flag("convolutions with channels last"),
    "fuse_conv_bias": _flag("add a convolution's bias in cuDNN's own kernel"),
    "sdpa_kernel": _number("bits that allow attention kernels; 0: ONNX Runtime's choice"),
    "enable_cuda_graph": _flag("capture the run as a CUDA graph: shapes must not change"),
    "enable_skip_layer_norm_strict_mode": _flag("SkipLayerNorm with sums in fp32"),
    "use_ep_level_unified_stream": _flag("one stream for all of the provider's work"),
    "tunable_op_enable": _flag("use what TunableOp has found"),
    "tunable_op_tuning_enable": _flag("let TunableOp measure implementations while running"),
    "tunable_op_max_tuning_duration_ms": _number("most milliseconds to measure one operator"),
}  # fmt: skip

_TENSORRT = {
    "device_id": _DEVICE,
    "trt_max_workspace_size": _number("most bytes of scratch memory of an engine; 0: no bound"),
    "trt_max_partition_iterations": _number("most rounds of splitting the graph", 1),
    "trt_min_subgraph_size": _number("fewest nodes that are worth an engine", 1),
    "trt_fp16_enable": _flag("let engines compute in fp16"),
    "trt_bf16_enable": _flag("let engines compute in bf16 (Ampere or newer)"),
    "trt_int8_enable": _flag("let engines compute in int8"),
    "trt_int8_calibration_table_name": _word("file of ranges, for models without QDQ nodes"),
    "trt_int8_use_native_calibration_table": _flag("that file is TensorRT's own form"),
    "trt_dla_enable": _flag("run on the Deep Learning Accelerator"),
    "trt_dla_core": _number("which of its cores"),
    "trt_engine_cache_enable": _flag("keep built engines on disk"),
    "trt_engine_cache_path": _word("folder of built engines"),
    "trt_engine_cache_prefix": _word("how their files' names begin"),
    "trt_engine_hw_compatible": _flag("engines that run on other GPUs, too (Ampere or newer)"),
    "trt_weight_stripped_engine_enable": _flag("engines without weights, refitted when loaded"),
    "trt_timing_cache_enable": _flag("keep what was measured of kernels on disk"),
    "trt_timing_cache_path": _word("folder of that"),
    "trt_force_timing_cache": _flag("take it even if another GPU model measured it"),
    "trt_force_sequential_engine_build": _flag("build the engines of several GPUs in turn"),
    "trt_builder_optimization_level": _number("how long to search for fast kernels", 0, 5),
    "trt_build_heuristics_enable": _flag("guess kernels instead of measuring all"),
    "trt_auxiliary_streams": _number("streams besides the main one; -1: TensorRT's choice", -1),
    "trt_sparsity_enable": _flag("let engines use 2:4 sparse weights"),
    "trt_tactic_sources": _word("libraries to take kernels from: `+CUDNN,-CUBLAS`"),
    "trt_extra_plugin_lib_paths": _word("plug-in libraries, separated by `;`"),
    "trt_profile_min_shapes": _word("least shapes, `ids:1x8,mask:1x8`; all three or none"),
    "trt_profile_opt_shapes": _word("shapes to be fastest at"),
    "trt_profile_max_shapes": _word("greatest shapes"),
    "trt_context_memory_sharing_enable": _flag("let engines share their scratch memory"),
    "trt_layer_norm_fp32_fallback": _flag("Pow and Reduce of layer norms in fp32"),
    "trt_cuda_graph_enable": _flag("capture the run as a CUDA graph"),
    "trt_preview_features": _word("TensorRT's preview features, by name"),
    "trt_op_types_to_exclude": _word("operators left to other providers: `NonMaxSuppression`"),
    "trt_load_user_initializer": _flag("hand weights over in memory, not in the model's bytes"),
    "trt_dump_subgraphs": _flag("write each engine's part of the graph as ONNX"),
    "trt_detailed_build_log": _flag("log each step of a build"),
    "trt_dump_ep_context_model": _flag("write the model with its engines inside (EPContext)"),
    "trt_ep_context_file_path": _word("where to"),
    "trt_ep_context_embed_mode": _number(
        "1: engines inside the model; 0: in files next to it", 0, 1
    ),
}

_OPENVINO = {
    "device_type": _word(
        "`CPU`, `GPU`, `GPU.1`, `NPU`, or several: `AUTO:GPU,CPU`, `HETERO:NPU,CPU`"
    ),
    "precision": _word("what the device computes in", "FP32", "FP16", "ACCURACY"),
    "device_id": _word("which device of its type; better said in device_type"),
    "num_of_threads": _number("threads on the CPU", 1),
    "num_streams": _number("requests that run in parallel", 1),
    "cache_dir": _word("folder of compiled models"),
    "load_config": _word("JSON file with OpenVINO's own properties, by device"),
    "model_priority": _word("of several models on a device", "LOW", "MEDIUM", "HIGH", "DEFAULT"),
    "layout": _word("layouts of inputs and outputs: `input[NCHW],output[NC]`"),
    "reshape_input": _word("bounds of shapes: `input[1..8,3,224,224]`"),
    "enable_opencl_throttling": _flag("spare the CPU while a GPU computes", spelling=_CAPITAL),
    "disable_dynamic_shapes": _flag("compile anew for each shape", spelling=_CAPITAL),
    "enable_qdq_optimizer": _flag("drop QDQ pairs that an NPU does not need", spelling=_CAPITAL),
    "enable_causallm": _flag("the model is a language model with a cache", spelling=_CAPITAL),
}

_MIGRAPHX = {
    "device_id": _DEVICE,
    "migraphx_fp16_enable": _flag("compute in fp16"),
    "migraphx_bf16_enable": _flag("compute in bf16"),
    "migraphx_fp8_enable": _flag("compute in fp8"),
    "migraphx_int8_enable": _flag("compute in int8"),
    "migraphx_int8_calibration_table_name": _word("file of ranges"),
    "migraphx_use_native_calibration_table": _flag("that file is MIGraphX's own form"),
    "migraphx_exhaustive_tune": _flag("measure all kernels"),
    "migraphx_model_cache_dir": _word("folder of compiled models"),
    "migraphx_mem_limit": _LIMIT,
    "migraphx_arena_extend_strategy": _ARENA,
}

_ROCM = {
    "device_id": _DEVICE,
    "gpu_mem_limit": _LIMIT,
    "arena_extend_strategy": _ARENA,
    "miopen_conv_exhaustive_search": _flag("measure all of MIOpen's convolutions"),
    "miopen_conv_use_max_workspace": _flag("let convolutions use all the workspace they want"),
    "do_copy_in_default_stream": _flag("copy in the stream that computes"),
    "tunable_op_enable": _flag("use what TunableOp has found"),
    "tunable_op_tuning_enable": _flag("let TunableOp measure implementations while running"),
    "tunable_op_max_tuning_duration_ms": _number("most milliseconds to measure one operator"),
    "enable_hip_graph": _flag("capture the run as a HIP graph"),
}

_QNN = {
    "backend_path": _word("QNN's library, `libQnnHtp.so`; instead of backend_type"),
    "backend_type": _word("which processor", "cpu", "gpu", "htp", "saver", "ir"),
    "device_id": _DEVICE,
    "soc_model": _word("number of the chip; 0: unknown"),
    "htp_arch": _word("generation of the HTP", "0", "68", "69", "73", "75", "81"),
    "htp_performance_mode": _word(
        "speed against power", "default", "burst", "balanced", "high_performance",
        "sustained_high_performance", "high_power_saver", "low_balanced", "low_power_saver",
        "power_saver", "extreme_power_saver",
    ),
    "htp_graph_finalization_optimization_mode": _number("how long to optimize", 0, 3),
    "enable_htp_fp16_precision": _flag("compute fp32 models in fp16"),
    "offload_graph_io_quantization": _flag("quantize inputs and outputs on the CPU"),
    "qnn_context_priority": _word("of several", "low", "normal", "normal_high", "high"),
    "rpc_control_latency": _number("microseconds that a call may wait"),
    "vtcm_mb": _number("MB of on-chip memory", 1),
    "profiling_level": _word("what is measured", "off", "basic", "detailed", "optrace"),
    "profiling_file_path": _word("where that is written"),
}  # fmt: skip

_COREML = {
    "ModelFormat": _word("form of the compiled model", "NeuralNetwork", "MLProgram"),
    "MLComputeUnits": _word(
        "what it may run on", "ALL", "CPUOnly", "CPUAndGPU", "CPUAndNeuralEngine"
    ),
    "RequireStaticInputShapes": _flag("leave nodes with dynamic shapes to the CPU"),
    "EnableOnSubgraphs": _flag("take the bodies of Loop, Scan and If, too"),
    "SpecializationStrategy": _word("what compiling is for", "Default", "FastPrediction"),
    "ProfileComputePlan": _flag("log what each operator runs on"),
    "AllowLowPrecisionAccumulationOnGPU": _flag("sums in fp16 on the GPU"),
    "ModelCacheDirectory": _word("folder of compiled models"),
}

_WEBGPU = {
    "deviceId": _DEVICE,
    "dawnBackendType": _word("graphics interface", "Vulkan", "D3D12"),
    "powerPreference": _word("which GPU of several", "high-performance", "low-power"),
    "preferredLayout": _word("of convolutions", "NHWC", "NCHW"),
    "enableGraphCapture": _flag("capture the run: shapes must not change"),
    "forceCpuNodeNames": _word("nodes for the CPU, one a line"),
    "validationMode": _word("what WebGPU checks", "disabled", "wgpuOnly", "basic", "full"),
}

_DIRECTML = {
    "device_id": _DEVICE,
    "performance_preference": _word(
        "which GPU of several", "default", "high_performance", "minimum_power"
    ),
    "device_filter": _word("which processors", "gpu", "npu", "any"),
    "disable_metacommands": _flag("leave the driver's own kernels out"),
}

USE_ARENA = "use_arena"
_OWN_ARENA = {USE_ARENA: _flag("keep freed memory for the next run")}

OPTIONS: Mapping[str, Mapping[str, ProviderOption]] = {
    "cpu": _OWN_ARENA,
    "cuda": _CUDA,
    "tensorrt": _TENSORRT,
    "openvino": _OPENVINO,
    "directml": _DIRECTML,
    "coreml": _COREML,
    "rocm": _ROCM,
    "migraphx": _MIGRAPHX,
    "qnn": _QNN,
    "webgpu": _WEBGPU,
    "xnnpack": {"intra_op_num_threads": _number("threads of its own pool", 1)},
    "dnnl": _OWN_ARENA,
}
"""Provider -> its options by name. Any other provider's options are passed on as they are."""

DEVICE_OPTIONS = frozenset(
    {"device_id", "deviceId", "device_type", "device_filter", "backend_path", "backend_type"}
)
"""Options that say where: whether a provider loads hangs on them."""

FILE_OPTIONS = frozenset(
    {
        "trt_int8_calibration_table_name", "trt_engine_cache_path", "trt_engine_cache_prefix",
        "trt_timing_cache_path", "trt_extra_plugin_lib_paths", "trt_dump_subgraphs",
        "trt_dump_ep_context_model", "trt_ep_context_file_path", "cache_dir", "load_config",
        "migraphx_int8_calibration_table_name", "migraphx_model_cache_dir", "backend_path",
        "profiling_file_path", "ModelCacheDirectory",
    }
)  # fmt: skip
"""Options that name a file, a folder or a library, or that make a provider write files."""


def as_written(provider: str, options: Mapping[str, object]) -> dict[str, str]:
    """Options of a recipe as ONNX Runtime takes them."""
    known = OPTIONS.get(provider, {})
    plain = ProviderOption("string", "")
    return {name: known.get(name, plain).written(value) for name, value in options.items()}
