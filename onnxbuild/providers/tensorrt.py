"""TensorRT: engines for NVIDIA's GPUs. Options as onnxruntime-gpu 1.31.1 parses them."""

from collections.abc import Mapping
from typing import Any

from onnxbuild.core.axis import Axis, shape_at, symbols_of
from onnxbuild.core.provider import (
    DEVICE_ID,
    LibraryFix,
    OptionGroup,
    Provider,
    Shorthand,
    Symptom,
    TritonAccelerator,
    flag,
    number,
    path,
    word,
)
from onnxbuild.core.recipe import DummyInput
from onnxbuild.providers.vendors import nvidia

_OPTIONS = {
    "device_id": DEVICE_ID,
    "trt_max_workspace_size": number("most bytes of scratch memory of an engine; 0: no bound"),
    "trt_max_partition_iterations": number("most rounds of splitting the graph", 1),
    "trt_min_subgraph_size": number("fewest nodes that are worth an engine", 1),
    "trt_fp16_enable": flag("let engines compute in fp16"),
    "trt_bf16_enable": flag("let engines compute in bf16 (Ampere or newer)"),
    "trt_int8_enable": flag("let engines compute in int8"),
    "trt_int8_calibration_table_name": path("file of ranges, for models without QDQ nodes"),
    "trt_int8_use_native_calibration_table": flag("that file is in TensorRT's own format"),
    "trt_dla_enable": flag("run on the Deep Learning Accelerator"),
    "trt_dla_core": number("which of its cores"),
    "trt_engine_cache_enable": flag("keep built engines on disk"),
    "trt_engine_cache_path": path("folder of built engines"),
    "trt_engine_cache_prefix": path("how their files' names begin"),
    "trt_engine_hw_compatible": flag("engines that run on other GPUs, too (Ampere or newer)"),
    "trt_weight_stripped_engine_enable": flag("engines without weights, refitted when loaded"),
    "trt_timing_cache_enable": flag("keep what was measured of kernels on disk"),
    "trt_timing_cache_path": path("folder of that cache"),
    "trt_force_timing_cache": flag("use that cache even if another model of GPU measured it"),
    "trt_force_sequential_engine_build": flag("build the engines of several GPUs in turn"),
    "trt_builder_optimization_level": number("how long to search for fast kernels", 0, 5),
    "trt_build_heuristics_enable": flag("guess kernels instead of measuring all"),
    "trt_auxiliary_streams": number("streams besides the main one; -1: TensorRT's choice", -1),
    "trt_sparsity_enable": flag("let engines use 2:4 sparse weights"),
    "trt_tactic_sources": word("libraries to take kernels from: `+CUDNN,-CUBLAS`"),
    "trt_extra_plugin_lib_paths": path("plug-in libraries, separated by `;`"),
    "trt_profile_min_shapes": word("least shapes, `ids:1x8,mask:1x8`; all three or none"),
    "trt_profile_opt_shapes": word("shapes to be fastest at"),
    "trt_profile_max_shapes": word("greatest shapes"),
    "trt_context_memory_sharing_enable": flag("let engines share their scratch memory"),
    "trt_layer_norm_fp32_fallback": flag("Pow and Reduce of layer norms in fp32"),
    "trt_cuda_graph_enable": flag("capture the run as a CUDA graph"),
    "trt_preview_features": word("TensorRT's preview features, by name"),
    "trt_op_types_to_exclude": word("operators left to other providers: `NonMaxSuppression`"),
    "trt_load_user_initializer": flag("hand weights over in memory, not in the model's bytes"),
    "trt_dump_subgraphs": flag("write each engine's part of the graph as ONNX", names_file=True),
    "trt_detailed_build_log": flag("log each step of a build"),
    "trt_dump_ep_context_model": flag(
        "write the model with its engines inside (EPContext)", names_file=True
    ),
    "trt_ep_context_file_path": path("where to write that model"),
    "trt_ep_context_embed_mode": number(
        "1: engines inside the model; 0: in files next to it", 0, 1
    ),
}

_TRITON_MODES = {"trt_int8_enable": "INT8", "trt_fp16_enable": "FP16", "trt_bf16_enable": "BF16"}
_IN_TRITON = {
    "trt_max_workspace_size": "max_workspace_size_bytes",
    "trt_int8_calibration_table_name": "int8_calibration_table_name",
    "trt_int8_use_native_calibration_table": "int8_use_native_calibration_table",
    **{
        f"trt_{each}": f"trt_{each}"
        for each in (
            "max_partition_iterations", "min_subgraph_size", "dla_enable", "dla_core", "engine_cache_enable",
            "engine_cache_path", "engine_cache_prefix", "dump_subgraphs", "force_sequential_engine_build",
            "context_memory_sharing_enable", "layer_norm_fp32_fallback", "timing_cache_enable",
            "timing_cache_path", "force_timing_cache", "detailed_build_log", "build_heuristics_enable",
            "sparsity_enable", "builder_optimization_level", "auxiliary_streams", "tactic_sources",
            "extra_plugin_lib_paths", "profile_min_shapes", "profile_max_shapes", "profile_opt_shapes",
            "cuda_graph_enable", "dump_ep_context_model", "ep_context_file_path", "ep_context_embed_mode",
        )
    },
}  # fmt: skip
"""Option -> the name that Triton's backend has for it; it fails on any that it does not know."""

_FROM_AXES = "profiles_from_axes"
_FROM_AXES_HELP = (
    "write trt_profile_*_shapes for the graph's inputs from dynamic_axes: one engine for the whole "
    "range, which TensorRT would else build anew when a size leaves what it has seen; only for a "
    "model that TensorRT takes as a whole"
)
_PROFILES = {
    "trt_profile_min_shapes": "min",
    "trt_profile_opt_shapes": "example",
    "trt_profile_max_shapes": "max",
}
"""Option -> the size of an axis that it is written with."""


def _with_profiles(
    options: Mapping[str, Any], inputs: Mapping[str, DummyInput], axes: Mapping[str, Axis]
) -> dict[str, Any]:
    """Add the three profiles of shapes, from the ranges of the dynamic axes; what is written stays.

    Args:
        inputs: The model's; those without a dynamic axis need no profile.
        axes: Name -> its range.

    Source: the page of the TensorRT execution provider, section on explicit shape ranges.
    """
    dynamic = [each for each in inputs.values() if any(map(symbols_of, each.shape))]
    symbols = {name for each in dynamic for size in each.shape for name in symbols_of(size)}
    if symbols - axes.keys():
        return dict(options)  # the recipe's fault, reported elsewhere
    made = {}
    for option, which in _PROFILES.items():
        sizes = {name: int(getattr(axis, which)) for name, axis in axes.items()}
        shapes = ((each.name, shape_at(each.shape, sizes)) for each in dynamic)
        made[option] = ",".join(f"{name}:{'x'.join(map(str, shape))}" for name, shape in shapes)
    return {**made, **options} if dynamic else dict(options)


def _static(options: Any) -> str:
    if options.activation_type == "int8" and options.symmetric is not False:
        return ""
    return "TensorRT takes signed, symmetric INT8 alone: write `activation_type: int8, symmetric: true`"


PROVIDER = Provider(
    name="tensorrt",
    full_name="TensorrtExecutionProvider",
    api_name="TensorRT",
    aliases=("trt", "tensor-rt", "tensor_rt"),
    options=_OPTIONS,
    shorthands={_FROM_AXES: Shorthand(_FROM_AXES_HELP, _with_profiles)},
    groups=(OptionGroup(tuple(_PROFILES), "TensorRT needs all three", _FROM_AXES),),
    vendor=nvidia.NVIDIA,
    memory="cuda",
    distribution="onnxruntime-gpu",
    library_distributions=("tensorrt", "nvidia-"),
    preload_dlls=True,
    preloaded_libraries=(nvidia.TENSORRT_LIBRARIES,),
    symptoms=(*nvidia.SYMPTOMS, Symptom("version", "TensorRT version mismatch")),
    requirement=nvidia.REQUIREMENT,
    libraries=(
        *nvidia.CUDA_LIBRARIES,
        LibraryFix(("libnvinfer", "libnvonnxparser"), "pip install 'tensorrt-cu13<11'"),
        nvidia.DRIVER_LIBRARY,
    ),
    remarks={
        "dynamic": nvidia.DYNAMIC,
        "static": _static,
        "weight_only": "TensorRT has no MatMulNBits: these nodes fall to the providers after it",
    },
    drops_options=True,
    compiles_for_gpu=True,
    api_struct=True,
    node_name="tensorrt",
    node_options={"device_id": "deviceId"},
    triton=TritonAccelerator("gpu", _IN_TRITON, _TRITON_MODES, "precision_mode"),
)
